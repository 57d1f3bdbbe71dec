"""`make_grid` and `save_image`."""

from __future__ import annotations

import math
from typing import Any

import torch
from PIL import Image


@torch.no_grad()
def make_grid(
    tensor: Any, nrow: int = 8, padding: int = 2, normalize: bool = False, value_range: Any = None,
    scale_each: bool = False, pad_value: float = 0.0, **_: Any,
) -> torch.Tensor:  # fmt: skip
    if isinstance(tensor, list | tuple):
        tensor = torch.stack([each if each.dim() == 3 else each[None] for each in tensor])
    tensor = tensor.detach()
    if tensor.dim() < 4:
        tensor = tensor.reshape(-1, *tensor.shape[-3:]) if tensor.dim() == 3 else tensor[None, None]
    if tensor.shape[1] == 1:
        tensor = tensor.expand(-1, 3, -1, -1)
    tensor = tensor.clone()
    if normalize:
        low, high = value_range or (float(tensor.min()), float(tensor.max()))
        tensor = ((tensor - low) / max(high - low, 1e-5)).clamp(0, 1)
    columns = min(nrow, len(tensor))
    rows = math.ceil(len(tensor) / columns)
    high, wide = tensor.shape[2] + padding, tensor.shape[3] + padding
    grid = tensor.new_full((3, high * rows + padding, wide * columns + padding), pad_value)
    for k, image in enumerate(tensor):
        y, x = k // columns * high + padding, k % columns * wide + padding
        grid[:, y : y + image.shape[1], x : x + image.shape[2]] = image
    return grid


@torch.no_grad()
def save_image(tensor: Any, fp: Any, format: str | None = None, **options: Any) -> None:
    grid = make_grid(tensor, **options)
    pixels = grid.mul(255).add(0.5).clamp(0, 255).permute(1, 2, 0).to("cpu", torch.uint8).numpy()
    Image.fromarray(pixels).save(fp, format=format)
