"""The frames of the program, its loops and its source."""
