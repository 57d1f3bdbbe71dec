"""Rules about the order of a step."""
