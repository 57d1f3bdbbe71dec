"""Rules about the health of a training as it runs."""
