"""The use of memory, and the options that would fit."""
