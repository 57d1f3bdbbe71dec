"""Whose code runs, and where it stands: frames, loops, sources."""
