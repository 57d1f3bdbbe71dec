"""The images task: classification of a folder of class folders."""

from trueloop.tasks.images.task import Images

__all__ = ["Images"]
