"""A language server: what `trueloop check` finds, in an editor, as one types.

`open_files` knows nothing of the protocol: texts in, findings out. `server` speaks it, by pygls.
"""
