"""Saving and loading: atomic, verified."""

from trueloop.atomic import WriteError, cannot_write, write_atomic
from trueloop.checkpoint.checkpoints import Checkpoints
from trueloop.checkpoint.layout import model_state
from trueloop.checkpoint.load import has_checkpoint, load_checkpoint
from trueloop.checkpoint.lock import LOCK, claimed
from trueloop.checkpoint.state import capture, place_of, restore

__all__ = [
    "LOCK",
    "Checkpoints",
    "WriteError",
    "cannot_write",
    "capture",
    "claimed",
    "has_checkpoint",
    "load_checkpoint",
    "model_state",
    "place_of",
    "restore",
    "write_atomic",
]
