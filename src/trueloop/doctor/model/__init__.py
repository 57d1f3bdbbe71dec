"""What every part of the doctor speaks of: events, things, findings, words."""
