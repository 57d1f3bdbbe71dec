"""The images task: classification of a folder of class folders."""

from trueloop.tasks.images.resnet import ResNet
from trueloop.tasks.images.task import Images

__all__ = ["Images", "ResNet"]
