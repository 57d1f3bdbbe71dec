"""From the bytes of a field to what a sample has of it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from trueloop.errors import DataError

Decoder = Callable[[Any], Any]

_IMAGES = ("jpg", "jpeg", "png", "webp", "bmp", "gif", "tif", "tiff", "ppm", "pgm", "pbm")
_NUMBERS = ("cls", "cls2", "class", "count", "index", "inx", "id")
_TEXTS = ("txt", "text", "transcript")
_CODE = ("pkl", "pickle", "pyd", "pth", "pt", "joblib", "dill")


def of_field(field: str) -> Decoder:
    """The decoder of a tar file's field, by the end of the name after its last dot."""
    kind = field.rpartition(".")[2]
    if kind in _CODE:
        return _UnsafeFormat(field)
    for name, known in (("image", _IMAGES), ("int", _NUMBERS), ("text", _TEXTS)):
        if kind in known:
            return NAMED[name]
    return NAMED.get({"jsn": "json"}.get(kind, kind), raw)


def raw(content: Any) -> Any:
    """The value, not decoded."""
    return content


def image(content: Any) -> torch.Tensor:
    """A picture of any format that Pillow reads: uint8 of shape (3, height, width), RGB."""
    return _pixels(content, "RGB").permute(2, 0, 1).contiguous()


def gray(content: Any) -> torch.Tensor:
    """A picture in shades of gray: uint8 of shape (1, height, width)."""
    return _pixels(content, "L")[None]


def number(content: Any) -> int:
    """An integer in decimal digits."""
    return int(content)


def text(content: Any) -> str:
    """UTF-8."""
    return content if isinstance(content, str) else bytes(content).decode("utf-8")


def from_json(content: Any) -> Any:
    """The value that the JSON encodes."""
    return json.loads(content)


def from_npy(content: Any) -> torch.Tensor:
    """An array in numpy's format, without Python objects."""
    return torch.from_numpy(np.load(io.BytesIO(content), allow_pickle=False))


NAMED: dict[str, Decoder] = {
    "bytes": raw,
    "image": image,
    "gray": gray,
    "int": number,
    "text": text,
    "json": from_json,
    "npy": from_npy,
}
"""The names that `decode={field: name}` takes."""


class _UnsafeFormat:
    """For formats whose reading runs code that the file brings."""

    def __init__(self, field: str) -> None:
        self._field = field

    def __call__(self, content: Any) -> Any:
        raise DataError(
            f"the field {self._field!r} is a pickle, whose reading runs code from the file: leave "
            f"it out with fields=[...], or write decode={{{self._field!r}: function}} if you know "
            "where it comes from"
        )


def _pixels(content: Any, mode: str) -> torch.Tensor:
    from PIL import Image

    if isinstance(content, dict):  # as Hugging Face writes images into Parquet
        content = content["bytes"]
    with Image.open(io.BytesIO(content)) as picture:
        return torch.from_numpy(np.array(picture.convert(mode)))
