"""Rules about time that a training loses."""
