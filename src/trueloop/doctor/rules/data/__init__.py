"""Rules about data, sampling and what a score is computed on."""
