"""Rules about checkpoints and reproducibility."""
