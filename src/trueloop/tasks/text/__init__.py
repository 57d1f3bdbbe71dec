"""The task `text`: a language model of any text."""

from trueloop.tasks.text.task import Text

__all__ = ["Text"]
