"""One optimizer update and its organs."""

from trueloop.step.losses import apply_model, supervised
from trueloop.step.step import Step

__all__ = ["Step", "apply_model", "supervised"]
