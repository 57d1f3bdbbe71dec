"""One optimizer update, whole: its window, precision, clipping and schedule."""

from trueloop.step.step import Step

__all__ = ["Step"]
