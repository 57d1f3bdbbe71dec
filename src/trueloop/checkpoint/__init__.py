"""Saving and loading: atomic, verified."""

from trueloop.checkpoint.atomic import write_atomic
from trueloop.checkpoint.checkpoints import Checkpoints, load_checkpoint

__all__ = ["Checkpoints", "load_checkpoint", "write_atomic"]
