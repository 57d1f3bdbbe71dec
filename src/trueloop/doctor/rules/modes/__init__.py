"""Rules about train and eval mode, and the autograd graph."""
