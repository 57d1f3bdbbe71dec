"""Rules about the comments that suppress others."""
