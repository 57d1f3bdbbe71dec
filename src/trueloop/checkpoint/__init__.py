"""Saving and loading: atomic, verified."""

from trueloop.checkpoint.atomic import cannot_write, write_atomic
from trueloop.checkpoint.checkpoints import (
    Checkpoints,
    has_checkpoint,
    load_checkpoint,
    parse_every,
)

__all__ = [
    "Checkpoints",
    "cannot_write",
    "has_checkpoint",
    "load_checkpoint",
    "parse_every",
    "write_atomic",
]
