"""Patches of torch: each file turns calls of one part of it into events."""
