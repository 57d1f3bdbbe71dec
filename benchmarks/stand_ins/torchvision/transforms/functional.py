"""The transforms as functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from . import InterpolationMode, center_crop, crop, hflip, normalize, resize, to_image, to_tensor

to_pil_image = to_image


def pil_to_tensor(image: Any) -> torch.Tensor:
    values = np.array(image)
    return torch.from_numpy(values if values.ndim == 3 else values[:, :, None]).permute(2, 0, 1)


__all__ = [
    "InterpolationMode", "center_crop", "crop", "hflip", "normalize", "pil_to_tensor", "resize",
    "to_pil_image", "to_tensor",
]  # fmt: skip
