"""The doctor's common types: events, things, findings, words."""
