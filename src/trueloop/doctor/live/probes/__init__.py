"""Probes: what they measure on the running program, no single event shows."""
