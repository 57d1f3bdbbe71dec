"""Images that are trained on and judged by: the same pixels in two parts of the data."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trueloop.tasks.findings import DataFinding, is_much, shared_samples

Pixels = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]

_BATCH = 4096


def shared_images(parts: dict[str, tuple[Pixels, Ints]], *, by_folder: bool) -> list[DataFinding]:
    """A word on held-out images whose pixels are those of a training image.

    `parts` are `train`, `val` and maybe `test`: images (N, channels, height, width) as they enter
    the model, and the rows that belong to the part. Images of one colour are equal by nature and
    do not count. A few twins that a data set holds are no news, unless it came divided
    `by_folder`: then they were meant to be apart.
    """
    seen: dict[int, npt.NDArray[np.uint64]] = {}
    hashes = {}
    for name, (images, rows) in parts.items():
        if id(images) not in seen:
            seen[id(images)] = _hashes(images)
        hashes[name] = seen[id(images)][rows]
    trained = hashes["train"]
    shared = {
        name: int((np.isin(found, trained) & (found != 0)).sum())
        for name, found in hashes.items()
        if name != "train"
    }
    sizes = {name: len(hashes[name]) for name in shared}
    much = any(is_much(shared[name], sizes[name]) for name in shared)
    if not much and not by_folder:
        return []
    return shared_samples(shared, sizes, noun="images", severity="warning" if much else "advice")


def _hashes(images: Pixels) -> npt.NDArray[np.uint64]:
    """A number for the pixels of each image: the same for equal ones, and for others with a
    probability of about 2^-64; 0 for an image of one colour throughout."""
    flat = images.reshape(len(images), -1)
    width = -(-flat.shape[1] // 8)
    draws = np.random.default_rng(0).integers(0, 2**64, width, dtype=np.uint64) | np.uint64(1)
    hashes = np.empty(len(flat), dtype=np.uint64)
    padded = np.zeros((_BATCH, 8 * width), dtype=np.uint8)
    for start in range(0, len(flat), _BATCH):
        some = flat[start : start + _BATCH]
        padded[: len(some), : flat.shape[1]] = some
        words = padded[: len(some)].view(np.uint64)
        # The upper half of a product depends on all bits of its factors, the lower one does not.
        words = words * draws
        words = (words ^ (words >> np.uint64(32))) * draws[::-1]
        sums = (words ^ (words >> np.uint64(29))).sum(axis=1, dtype=np.uint64)
        hashes[start : start + len(some)] = sums
        hashes[start : start + len(some)][(some == some[:, :1]).all(axis=1)] = 0
    return hashes
