"""The ways to start watching: a script, a block, a notebook, `fit`."""
