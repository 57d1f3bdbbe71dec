"""Images that are trained on and judged by: the same pixels in two parts of the data."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from trueloop.tasks.data_findings import DataFinding, is_much, shared_samples

Pixels = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Prints = npt.NDArray[np.uint64]

_BATCH = 4096
_PLAIN = np.uint64(1)
"""The bit of a fingerprint that says that the image is of one colour."""


def shared_images(parts: dict[str, tuple[Prints, Ints]], *, by_folder: bool) -> list[DataFinding]:
    """A finding on held-out images whose pixels are those of a training image.

    `parts` are `train`, `val` and maybe `test`: the fingerprints of images as they enter the model,
    and the rows that belong to the part. Images of one colour are equal by nature and do not count.
    A few duplicates in a data set are not reported, unless it came divided `by_folder`: then they
    were meant to be apart.
    """
    found = {name: prints[rows] for name, (prints, rows) in parts.items()}
    trained = found["train"]
    shared = {
        name: int((np.isin(prints, trained) & ~is_one_colour(prints)).sum())
        for name, prints in found.items()
        if name != "train"
    }
    sizes = {name: len(found[name]) for name in shared}
    much = any(is_much(shared[name], sizes[name]) for name in shared)
    if not much and not by_folder:
        return []
    return shared_samples(shared, sizes, noun="images", severity="warning" if much else "advice")


def fingerprints(images: Pixels) -> Prints:
    """A number for the pixels of each of the images (N, channels, height, width): the same for
    equal ones, and for others with a probability of about 2^-63; `is_one_colour` reads it too."""
    flat = np.ascontiguousarray(images).reshape(len(images), -1)
    width = -(-flat.shape[1] // 8)
    draws = _draws(width)
    found = np.empty(len(flat), dtype=np.uint64)
    padded = np.zeros((min(_BATCH, len(flat)), 8 * width), dtype=np.uint8)
    for start in range(0, len(flat), _BATCH):
        some = flat[start : start + _BATCH]
        padded[: len(some), : flat.shape[1]] = some
        words = padded[: len(some)].view(np.uint64)
        # The upper half of a product depends on all bits of its factors, the lower one does not.
        words = words * draws
        words = (words ^ (words >> np.uint64(32))) * draws[::-1]
        sums = (words ^ (words >> np.uint64(29))).sum(axis=1, dtype=np.uint64)
        plain = (some == some[:, :1]).all(axis=1)
        found[start : start + len(some)] = (sums & ~_PLAIN) | plain.astype(np.uint64)
    return found


def is_one_colour(prints: Prints) -> npt.NDArray[np.bool_]:
    """Which fingerprints are of images whose values are all the same."""
    return (prints & _PLAIN).astype(bool)


@lru_cache(maxsize=8)
def _draws(width: int) -> Prints:
    drawn = np.random.default_rng(0).integers(0, 2**64, width, dtype=np.uint64)
    return drawn | np.uint64(1)
