"""Images in the program's memory: taken by `Run.predict` beside files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from trueloop.errors import DataError
from trueloop.tasks.images.decode import ImageShape, shaped

if TYPE_CHECKING:
    from PIL.Image import Image


def images_of(data: Any, form: ImageShape) -> Tensor:
    """One image, or several in a list, an array or a tensor, as uint8 (N, channels, height, width).

    An image is Pillow's, a numpy array (height, width) or (height, width, 1, 3 or 4), or a tensor
    (1, 3 or 4, height, width); numbers are uint8 from 0 to 255. All are brought into `form` in the
    way of a file's image. Raises `DataError`.
    """
    from PIL.Image import Image

    one = isinstance(data, Image) or (
        isinstance(data, (np.ndarray, Tensor)) and _is_one(data.shape, isinstance(data, Tensor))
    )
    if not one and not isinstance(data, (np.ndarray, Tensor, list, tuple)):
        raise DataError(
            f"the images to predict are a {type(data).__name__}: give a list of Pillow images or "
            "uint8 arrays, one of them, or the path of an image or a folder"
        )
    several: Iterable[Any] = [data] if one else data
    pixels = [shaped(_image(each, row), form) for row, each in enumerate(several, start=1)]
    if not pixels:
        raise DataError("the list of images to predict is empty: give at least one")
    return torch.from_numpy(np.stack(pixels))


def _is_one(shape: Any, is_tensor: bool) -> bool:
    if len(shape) == 2:
        return True
    return len(shape) == 3 and shape[0 if is_tensor else 2] in (1, 3, 4)


def _image(given: Any, number: int) -> Image:
    from PIL import Image

    if isinstance(given, Image.Image):
        return given
    is_tensor = isinstance(given, Tensor)
    if not (is_tensor or isinstance(given, np.ndarray)) or not _is_one(given.shape, is_tensor):
        shape = f" of shape {tuple(given.shape)}" if hasattr(given, "shape") else ""
        raise DataError(
            f"image {number} is a {type(given).__name__}{shape}: give Pillow's images, arrays "
            "(height, width, channels) or tensors (channels, height, width)"
        )
    array = given.detach().cpu().numpy() if is_tensor else given
    if array.dtype != np.uint8:
        raise DataError(
            f"image {number} is {array.dtype}: give uint8 from 0 to 255, e.g. "
            "(255 * image).astype('uint8')"
        )
    if array.ndim == 3:
        array = array.transpose(1, 2, 0) if is_tensor else array
        array = array[:, :, 0] if array.shape[2] == 1 else array
    if not array.size:
        raise DataError(f"image {number} has no pixels: leave it out")
    return Image.fromarray(np.ascontiguousarray(array))
