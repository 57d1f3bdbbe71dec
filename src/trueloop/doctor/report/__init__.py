"""How findings are told: to people, to programs, to code hosts."""
