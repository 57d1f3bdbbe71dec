"""Recorded computations that gave NaN or infinity, run again."""
