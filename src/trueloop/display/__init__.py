"""The progress of a training as people see it: at a terminal, in a notebook, in a file."""

from trueloop.display.progress_display import ProgressDisplay
from trueloop.display.screens import Screen, screen_of_fit, standard_output

__all__ = ["ProgressDisplay", "Screen", "screen_of_fit", "standard_output"]
