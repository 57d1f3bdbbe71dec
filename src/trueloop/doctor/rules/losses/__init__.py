"""Rules about the loss and its targets."""
