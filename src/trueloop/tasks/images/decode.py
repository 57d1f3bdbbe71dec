"""Image files as uint8 arrays of one size; Pillow decodes."""

from __future__ import annotations

import io
import math
import mmap
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import Dataset

from trueloop.errors import DataError
from trueloop.files import NotAFileError, read_bytes
from trueloop.names import printable_line
from trueloop.tasks.images.pool import on_all

if TYPE_CHECKING:
    from PIL.Image import Image

    Pixels = npt.NDArray[np.uint8]

StrPath = str | os.PathLike[str]

KEPT = 64
"""Images that are all of one size up to this many pixels a side are kept as they are."""
SMALLEST, LARGEST = 32, 128
"""Otherwise the images are made square, of their usual size within these bounds."""
_LEAST_SIDE = 8
_ORIENTATION = 0x0112
"""The EXIF tag that says how an image is to be turned: 1 for not at all."""
_SAMPLE = 256


@dataclass(frozen=True)
class ImageShape:
    """The form of every decoded image."""

    channels: int
    """1 for grey, 3 for colour."""
    height: int
    width: int

    @property
    def bytes(self) -> int:
        return self.channels * self.height * self.width


class BrokenImageError(Exception):
    """The file is not an image that can be decoded; the message says why in a few words."""


def decode(path: StrPath, form: ImageShape) -> Pixels:
    """The image at `path` as uint8 (channels, height, width). Raises `BrokenImageError`.

    Turned as its EXIF orientation says, laid on white where it is transparent, scaled to cover
    `form` and cut to it around the middle. Of an animation it is the
    first frame, of 16 bits the upper 8.
    """
    with _opened(path) as image:
        # A JPEG can be decoded at a half, a quarter or an eighth of its size, which is faster.
        image.draft(image.mode, (2 * form.width, 2 * form.height))
        return shaped(image, form)


def shaped(image: Image, form: ImageShape) -> Pixels:
    """Pillow's image as uint8 (channels, height, width), in the way of `decode`."""
    from PIL import Image, ImageOps

    image.load()  # of a PNG, the orientation may stand after the pixels
    if image.getexif().get(_ORIENTATION, 1) != 1:
        image = ImageOps.exif_transpose(image)
    flat = _flat(image, form.channels)
    if flat.size != (form.width, form.height):
        flat = ImageOps.fit(flat, (form.width, form.height), Image.Resampling.BICUBIC)
    pixels = np.asarray(flat)
    return pixels[None] if form.channels == 1 else pixels.transpose(2, 0, 1)


@contextmanager
def _opened(path: StrPath) -> Iterator[Image]:
    """Pillow's image, with whatever goes wrong while it is used as a `BrokenImageError`."""
    from PIL import Image, UnidentifiedImageError

    try:
        content = read_bytes(path)
        if not content:
            raise BrokenImageError("an empty file")
        with Image.open(io.BytesIO(content)) as image:
            _refuse_bomb(image)
            yield image
    except BrokenImageError:
        raise
    except (FileNotFoundError, NotAFileError):
        raise BrokenImageError("a link that leads nowhere, or no ordinary file") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise BrokenImageError("an image bomb, far too many pixels") from None
    except UnidentifiedImageError:
        raise BrokenImageError("not an image in a format that Pillow knows") from None
    except Exception as error:
        # On damaged bytes Pillow's decoders raise anything: OSError, SyntaxError, struct.error, …
        reason = printable_line(str(error)) or type(error).__name__
        raise BrokenImageError(reason) from None


def _refuse_bomb(image: Image) -> None:
    """Only by the header, before a pixel is decoded. Pillow itself only warns up to twice the
    limit."""
    from PIL import Image

    limit = Image.MAX_IMAGE_PIXELS
    if limit is not None and image.width * image.height > limit:
        raise BrokenImageError(f"an image bomb of {image.width}×{image.height} pixels")


@contextmanager
def quiet_about_bombs() -> Iterator[None]:
    """Without Pillow's warning about large images, which are refused here anyway."""
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        yield


def _flat(image: Image, channels: int) -> Image:
    """The image with 8 bits per channel, grey or RGB, without transparency."""
    from PIL import Image

    if image.mode == "I" or image.mode.startswith("I;16"):
        wide = np.asarray(image).astype(np.int64)
        image = Image.fromarray((wide.clip(0, 65535) >> 8).astype(np.uint8))
    if image.mode in ("LA", "PA", "La", "RGBA", "RGBa") or "transparency" in image.info:
        coloured = image.convert("RGBA")
        image = Image.new("RGBA", image.size, (255, 255, 255, 255))
        image.alpha_composite(coloured)
    mode = "L" if channels == 1 else "RGB"
    return image if image.mode == mode else image.convert(mode)


def choose_form(paths: Sequence[StrPath], size: int | None) -> ImageShape:
    """A form that suits the images, by a look at up to 256 of them; `size` makes it square.

    Grey if they all are, also where they are stored with three equal channels. Raises `DataError`
    if none of them can be read.
    """
    step = max(1, len(paths) // _SAMPLE)
    found = []
    for path in paths[::step]:
        try:
            found.append(_look(path))
        except BrokenImageError as error:
            broken = f"{path}: {error}"
    if not found:
        raise DataError(f"none of the images can be read (the last one was {broken}): check --data")
    channels = 1 if all(grey for _, _, grey in found) else 3
    sizes = {(height, width) for height, width, _ in found}
    height, width = next(iter(sizes))
    if size is not None:
        return ImageShape(channels, size, size)
    if len(sizes) == 1 and min(height, width) >= _LEAST_SIDE and max(height, width) <= KEPT:
        return ImageShape(channels, height, width)
    usual = int(np.median([min(height, width) for height, width, _ in found]))
    side = min(max(usual, SMALLEST), LARGEST) // 8 * 8
    return ImageShape(channels, side, side)


def _look(path: StrPath) -> tuple[int, int, bool]:
    """Height and width of the upright image, and whether it is grey."""
    from PIL import ImageOps

    with quiet_about_bombs(), _opened(path) as image:
        width, height = image.size
        # 5 to 8 are the orientations that lie on their side.
        if image.getexif().get(_ORIENTATION, 1) >= 5:
            width, height = height, width
        image.draft(image.mode, (KEPT, KEPT))
        image = ImageOps.exif_transpose(image)
        pixels = np.asarray(_flat(image, 3))
    grey = bool((pixels == pixels[:, :, :1]).all())
    return height, width, grey


def decode_some(
    paths: Sequence[StrPath], rows: range, form: ImageShape
) -> tuple[Pixels, dict[int, str]]:
    """The images of these rows, uint8 (len(rows), channels, height, width), and the reasons of
    broken ones by row, which are left black."""
    images = np.zeros((len(rows), form.channels, form.height, form.width), dtype=np.uint8)
    broken = {}
    for place, row in enumerate(rows):
        try:
            images[place] = decode(paths[row], form)
        except BrokenImageError as error:
            broken[row] = str(error)
    return images, broken


def decode_all(
    paths: Sequence[StrPath], form: ImageShape, *, what: str, quiet: bool = False
) -> tuple[Tensor, dict[int, str]]:
    """All images as uint8 (N, channels, height, width), and the reasons of those that are broken,
    which are left black."""
    images = shared_zeros((len(paths), form.channels, form.height, form.width), np.uint8)

    def work(rows: range) -> dict[int, str]:
        images[rows.start : rows.stop], broken = decode_some(paths, rows, form)
        return broken

    with quiet_about_bombs():
        broken = on_all(work, len(paths), what=what, quiet=quiet)
    return torch.from_numpy(images), broken


def find_broken(
    paths: Sequence[StrPath], form: ImageShape, *, what: str, quiet: bool = False
) -> dict[int, str]:
    """The reasons of the images that are broken, by position; each is decoded and let go."""

    def work(rows: range) -> dict[int, str]:
        return decode_some(paths, rows, form)[1]

    with quiet_about_bombs():
        return on_all(work, len(paths), what=what, quiet=quiet)


def shared_zeros(shape: tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
    """An array that forked processes write for this one."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    return np.frombuffer(mmap.mmap(-1, max(size, 1)), dtype=dtype, count=math.prod(shape)).reshape(
        shape
    )


class ImageFiles(Dataset[Any]):
    """Images that are decoded when asked for, for data that do not fit into memory.

    Items are (uint8 (channels, height, width), class index), or only the image without `labels`.
    Raises `DataError` for a broken file.
    """

    def __init__(
        self, paths: Sequence[StrPath], labels: list[int] | None, form: ImageShape
    ) -> None:
        self.paths = paths
        self.labels = labels
        self.form = form

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        image = self._image(index)
        return image if self.labels is None else (image, self.labels[index])

    def _image(self, index: int) -> Tensor:
        try:
            with quiet_about_bombs():
                pixels = decode(self.paths[index], self.form)
        except BrokenImageError as error:
            raise broken_image(self.paths[index], str(error)) from None
        # A copy: Pillow's memory is read-only.
        return torch.from_numpy(pixels.copy())


def broken_image(path: StrPath, reason: str, more: int = 0) -> DataError:
    """The error for a broken file, and for so many more of them."""
    others = f" (and {more} more)" if more else ""
    return DataError(
        f"{path}{others} cannot be decoded: {reason}: remove or replace it, or train with "
        "--broken skip"
    )
