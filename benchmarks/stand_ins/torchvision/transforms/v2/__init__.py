"""What transformers imports of the second version."""

from torchvision.transforms import functional

__all__ = ["functional"]
