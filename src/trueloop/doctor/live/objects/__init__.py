"""The program's objects, as the rules speak of them."""
