"""Programs as they run: patches of torch, the events that they record, and the findings.

Nothing here is imported before a program is watched; `watcher` and the seams need torch, the rest
does not.
"""
