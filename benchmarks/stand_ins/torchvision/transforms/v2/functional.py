"""The same functions."""

from torchvision.transforms.functional import *  # noqa: F403
