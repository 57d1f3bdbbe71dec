"""Child processes and ranks, and one report of all."""
