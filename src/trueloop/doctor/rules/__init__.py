"""One file per rule: its page and its detector together. `catalogue.py` is the index."""
