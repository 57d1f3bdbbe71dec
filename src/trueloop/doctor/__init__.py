"""The doctor: one vocabulary of events, two sources of them, one catalogue of rules.

`source` reads Python files without running them, `runtime` watches a program as it runs; both hand
the same events to the same rules. Nothing here imports torch until a program is watched.
"""
