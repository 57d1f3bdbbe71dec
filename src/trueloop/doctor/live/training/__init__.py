"""Whether training makes progress: losses, gradients and updates together."""
