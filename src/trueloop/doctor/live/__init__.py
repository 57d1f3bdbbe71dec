"""Programs as they run: what is put into torch, the events that come of it, what is told of them.

Nothing here is imported before a program is watched; `watcher` and the seams need torch, the rest
does not.
"""
