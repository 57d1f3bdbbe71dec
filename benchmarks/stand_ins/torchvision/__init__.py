"""What training scripts use of torchvision, over made-up images."""

from . import datasets, io, models, transforms, utils

__version__ = "0.28.0"
__all__ = ["datasets", "io", "models", "transforms", "utils"]
