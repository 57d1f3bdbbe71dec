"""Rules about mixed precision, gradient accumulation and clipping."""
