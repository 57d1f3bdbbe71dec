"""Losses and gradients that are not finite, and where that began."""
