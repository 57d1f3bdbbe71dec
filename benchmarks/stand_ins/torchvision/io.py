"""Named by transformers, not used."""
