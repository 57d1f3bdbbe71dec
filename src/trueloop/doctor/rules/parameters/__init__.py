"""Rules about parameters and the optimizer."""
