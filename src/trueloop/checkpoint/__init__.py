"""Saving and loading: atomic, verified."""

from trueloop.checkpoint.atomic import cannot_write, write_atomic
from trueloop.checkpoint.checkpoints import Checkpoints, load_checkpoint

__all__ = ["Checkpoints", "cannot_write", "load_checkpoint", "write_atomic"]
