"""The transforms that scripts use, over Pillow and torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageOps


class InterpolationMode(Enum):
    NEAREST, BILINEAR, BICUBIC, LANCZOS = "nearest", "bilinear", "bicubic", "lanczos"
    NEAREST_EXACT, BOX, HAMMING = "nearest-exact", "box", "hamming"


_PILLOW = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3}


def _pair(size: Any) -> tuple[int, int]:
    return (int(size), int(size)) if isinstance(size, int | float) else tuple(size)  # type: ignore[return-value]


def to_tensor(image: Any) -> torch.Tensor:
    values = np.array(image)
    if values.ndim == 2:
        values = values[:, :, None]
    tensor = torch.from_numpy(np.ascontiguousarray(values.transpose(2, 0, 1)))
    return tensor.float().div(255) if tensor.dtype is torch.uint8 else tensor


def to_image(tensor: Any, mode: str | None = None) -> Image.Image:
    if isinstance(tensor, torch.Tensor):
        if tensor.is_floating_point():
            tensor = tensor.mul(255).byte()
        tensor = tensor.permute(1, 2, 0).cpu().numpy() if tensor.dim() == 3 else tensor.numpy()
    return Image.fromarray(tensor[..., 0] if tensor.ndim == 3 and tensor.shape[2] == 1 else tensor)


def normalize(tensor: torch.Tensor, mean: Any, std: Any, inplace: bool = False) -> torch.Tensor:
    shape = (-1, 1, 1)
    center = torch.as_tensor(mean, dtype=tensor.dtype).view(shape)
    return (tensor - center) / torch.as_tensor(std, dtype=tensor.dtype).view(shape)


def resize(image: Any, size: Any, interpolation: Any = 2, **_: Any) -> Any:
    if isinstance(image, torch.Tensor):
        return torch.nn.functional.interpolate(image[None], _pair(size))[0]
    wide, high = image.size
    if isinstance(size, int):
        ratio = size / min(wide, high)
        target = (round(wide * ratio), round(high * ratio))
    else:
        target = (int(size[1]), int(size[0])) if len(size) == 2 else (int(size[0]),) * 2
    if isinstance(interpolation, InterpolationMode):
        interpolation = _PILLOW[interpolation.value]
    return image.resize(target, interpolation)


def crop(image: Any, top: int, left: int, height: int, width: int) -> Any:
    if isinstance(image, torch.Tensor):
        return image[..., top : top + height, left : left + width]
    return image.crop((left, top, left + width, top + height))


def center_crop(image: Any, size: Any) -> Any:
    high, wide = _pair(size)
    if isinstance(image, torch.Tensor):
        have_high, have_wide = image.shape[-2:]
    else:
        have_wide, have_high = image.size
    return crop(image, (have_high - high) // 2, (have_wide - wide) // 2, high, wide)


def hflip(image: Any) -> Any:
    return image.flip(-1) if isinstance(image, torch.Tensor) else ImageOps.mirror(image)


class Compose:
    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, image: Any) -> Any:
        for each in self.transforms:
            image = each(image)
        return image


class _Transform(torch.nn.Module):
    """A function of the image, with arguments."""

    function: Callable[..., Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.args, self.kwargs = args, kwargs

    def forward(self, image: Any) -> Any:
        return type(self).function(image, *self.args, **self.kwargs)


class ToTensor(_Transform):
    function = staticmethod(to_tensor)


class PILToTensor(_Transform):
    @staticmethod
    def function(image: Any) -> torch.Tensor:
        values = np.array(image)
        return torch.from_numpy(values.reshape(*values.shape[:2], -1)).permute(2, 0, 1)


class ToPILImage(_Transform):
    function = staticmethod(to_image)


class Normalize(_Transform):
    function = staticmethod(normalize)


class Resize(_Transform):
    function = staticmethod(resize)


Scale = Resize


class CenterCrop(_Transform):
    function = staticmethod(center_crop)


class Grayscale(_Transform):
    @staticmethod
    def function(image: Any, num_output_channels: int = 1) -> Any:
        grey = image.convert("L")
        return grey if num_output_channels == 1 else grey.convert("RGB")


class Pad(_Transform):
    @staticmethod
    def function(image: Any, padding: int, fill: Any = 0, **_: Any) -> Any:
        return ImageOps.expand(image, padding, fill)


class Lambda:
    def __init__(self, lambd: Callable[[Any], Any]) -> None:
        self.lambd = lambd

    def __call__(self, image: Any) -> Any:
        return self.lambd(image)


class RandomCrop(_Transform):
    @staticmethod
    def function(image: Any, size: Any, padding: Any = None, **_: Any) -> Any:
        if padding:
            image = ImageOps.expand(image, padding, 0)
        high, wide = _pair(size)
        top = int(torch.randint(0, image.size[1] - high + 1, (1,)))
        left = int(torch.randint(0, image.size[0] - wide + 1, (1,)))
        return crop(image, top, left, high, wide)


class RandomResizedCrop(_Transform):
    @staticmethod
    def function(
        image: Any, size: Any, scale: Any = (0.08, 1.0), ratio: Any = (3 / 4, 4 / 3), **more: Any
    ) -> Any:
        wide, high = image.size
        area = wide * high * float(torch.empty(1).uniform_(*scale))
        shape = math.exp(float(torch.empty(1).uniform_(math.log(ratio[0]), math.log(ratio[1]))))
        part = (min(high, round((area / shape) ** 0.5)), min(wide, round((area * shape) ** 0.5)))
        top = int(torch.randint(0, high - part[0] + 1, (1,)))
        left = int(torch.randint(0, wide - part[1] + 1, (1,)))
        return resize(crop(image, top, left, *part), _pair(size), more.get("interpolation", 2))


class RandomHorizontalFlip(_Transform):
    @staticmethod
    def function(image: Any, p: float = 0.5) -> Any:
        return hflip(image) if float(torch.rand(1)) < p else image


class RandomRotation(_Transform):
    @staticmethod
    def function(image: Any, degrees: Any, **_: Any) -> Any:
        low, high = degrees if isinstance(degrees, list | tuple) else (-degrees, degrees)
        return image.rotate(float(torch.empty(1).uniform_(low, high)))


class ColorJitter(_Transform):
    @staticmethod
    def function(image: Any, brightness: float = 0, contrast: float = 0, *_: Any, **__: Any) -> Any:
        for kind, much in (
            (ImageEnhance.Brightness, brightness),
            (ImageEnhance.Contrast, contrast),
        ):
            if much:
                image = kind(image).enhance(float(torch.empty(1).uniform_(1 - much, 1 + much)))
        return image


class RandomGrayscale(_Transform):
    @staticmethod
    def function(image: Any, p: float = 0.1) -> Any:
        return image.convert("L").convert("RGB") if float(torch.rand(1)) < p else image


class RandomApply(torch.nn.Module):
    def __init__(self, transforms: Sequence[Callable[[Any], Any]], p: float = 0.5) -> None:
        super().__init__()
        self.transforms, self.p = transforms, p

    def forward(self, image: Any) -> Any:
        if float(torch.rand(1)) < self.p:
            for each in self.transforms:
                image = each(image)
        return image
