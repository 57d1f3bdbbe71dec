"""Formats of a report: text for people, JSON, SARIF and GitHub annotations for programs."""
