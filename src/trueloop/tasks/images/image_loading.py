"""The images of a listing, decoded in one of three ways, and their parts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, Subset, TensorDataset

from trueloop.errors import DataError
from trueloop.folds import FoldNumber
from trueloop.names import printable
from trueloop.tasks.images.checks import Ints, Prints, fingerprints
from trueloop.tasks.images.decode import (
    ImageFiles,
    ImageShape,
    broken_image,
    decode_all,
    find_broken,
)
from trueloop.tasks.images.image_cache import (
    CachedImages,
    CacheLocation,
    MappedImages,
    NotCachedError,
    keep,
    print_line,
)
from trueloop.tasks.images.image_folder import Listing
from trueloop.tasks.random_split import stratified_split

_MEASURED = 2000


@dataclass
class ImageSubset:
    """Some of the images of a data set."""

    data: TensorDataset | ImageFiles | CachedImages
    """All of the data set's images: in memory with their labels, decoded when asked for, or mapped
    from the file that they are kept in."""
    listing: Listing
    """Where all of the data set's images are."""
    rows: Ints
    """Which of them."""
    labels: Ints
    """Their classes."""

    def __len__(self) -> int:
        return len(self.rows)

    def for_feed(self) -> Dataset[Any]:
        if isinstance(self.data, CachedImages):
            return MappedImages(self.data, self.rows, self.labels)
        return Subset(self.data, self.rows.tolist())

    def without_labels(self) -> Any:
        """The images without labels, for a `Feed` that yields model inputs."""
        if isinstance(self.data, TensorDataset):
            return self.data.tensors[0][torch.from_numpy(self.rows)]
        if isinstance(self.data, CachedImages):
            return MappedImages(self.data, self.rows, None)
        return ImageFiles([self.data.paths[k] for k in self.rows], None, self.data.form)

    def divide(self, shares: list[float], seed: int, fold: FoldNumber | None) -> list[ImageSubset]:
        """The rest, then a part for each share; the last may be a fold."""
        chosen = stratified_split(self.labels, shares, seed, fold)
        data, listing = self.data, self.listing
        return [ImageSubset(data, listing, self.rows[rows], self.labels[rows]) for rows in chosen]

    def statistics(self) -> tuple[list[float], list[float]]:
        """Mean and standard deviation of each channel, of pixels from 0 to 1.

        Of up to 2,000 images, evenly spread.
        """
        step = max(1, len(self) // _MEASURED)
        images = self._images(self.rows[::step])
        values = torch.arange(256, dtype=torch.float64) / 255
        means, deviations = [], []
        for channel in images.unbind(dim=1):
            counts = torch.bincount(channel.flatten(), minlength=256)
            shares = counts.double() / channel.numel()
            mean = float(shares @ values)
            std = math.sqrt(float(shares @ (values - mean) ** 2))
            means.append(mean)
            deviations.append(std or 1.0)  # a channel that never changes is left as it is
        return means, deviations

    def _images(self, rows: Ints) -> Tensor:
        if isinstance(self.data, TensorDataset):
            return self.data.tensors[0][torch.from_numpy(rows)]
        if isinstance(self.data, CachedImages):
            return self.data.take(rows)
        return torch.stack([self.data[int(row)][0] for row in rows])


def fingerprints_of(parts: dict[str, ImageSubset]) -> dict[str, tuple[Prints, Ints]] | None:
    """For `shared_images`; None for images that would have to be decoded for it."""
    found: dict[int, Prints] = {}
    for part in parts.values():
        data = part.data
        if id(data) in found:
            continue
        if isinstance(data, CachedImages):
            found[id(data)] = data.fingerprints
        elif isinstance(data, TensorDataset):
            found[id(data)] = fingerprints(data.tensors[0].numpy())
        else:
            return None
    return {name: (found[id(part.data)], part.rows) for name, part in parts.items()}


class ImageLoader:
    """Decodes listings, all in the same way, and remembers what it skipped."""

    def __init__(
        self,
        form: ImageShape,
        *,
        memory: float,
        place: CacheLocation | None = None,
        chosen_for: list[int | None] | None = None,
        skip: bool,
        quiet: bool = False,
    ) -> None:
        self.form = form
        self.quiet = quiet
        self.memory = memory
        """Bytes of decoded images that a listing may take in memory."""
        self.place = place
        """Where they are kept for later runs; None to keep none."""
        self._chosen_for = chosen_for or []
        """The size that `form` was chosen for by the images of the first listing."""
        self.skip = skip
        """Whether to skip broken images; otherwise one raises `DataError`."""
        self.skipped: dict[str, str] = {}
        """The reason of each broken image, by its path as `printable` writes it."""
        self.broken: dict[int, str] = {}
        """The same by the image's position in the last listing."""
        self._has_said_why = False

    def load(self, listing: Listing, name: str) -> ImageSubset:
        """The images of a listing that can be decoded. Raises `DataError`."""
        count = len(listing.paths)
        labels = listing.labels
        data, broken = self._decoded(listing, labels, f"reading {name}")
        if broken and not self.skip:
            first = next(iter(broken))
            raise broken_image(listing.paths[first], broken[first], len(broken) - 1)
        if len(broken) == count:
            raise DataError(
                f"none of the {count:,} images can be decoded ({listing.paths[0]}: {broken[0]}): "
                "check --data"
            )
        self.broken = broken
        self.skipped |= {printable(listing.paths[row]): reason for row, reason in broken.items()}
        is_whole = np.ones(count, dtype=bool)
        is_whole[list(broken)] = False
        rows = np.flatnonzero(is_whole)
        return ImageSubset(data, listing, rows, labels[rows])

    def _decoded(
        self, listing: Listing, labels: Ints, what: str
    ) -> tuple[TensorDataset | ImageFiles | CachedImages, dict[int, str]]:
        paths, form, quiet = listing.paths, self.form, self.quiet
        kept = self._kept(listing, what)
        if kept is not None:
            return kept
        if len(paths) * form.bytes <= self.memory:
            images, broken = decode_all(paths, form, what=what, quiet=quiet)
            return TensorDataset(images, torch.from_numpy(labels)), broken
        broken = find_broken(paths, form, what=what, quiet=quiet) if self.skip else {}
        return ImageFiles(paths, labels.tolist(), form), broken

    def _kept(self, listing: Listing, what: str) -> tuple[CachedImages, dict[int, str]] | None:
        if self.place is None:
            return None
        chosen_for, self._chosen_for = self._chosen_for, []
        try:
            return keep(
                listing,
                self.form,
                self.place,
                chosen_for=chosen_for,
                what=what,
                quiet=self.quiet,
            )
        except NotCachedError as error:
            if not self._has_said_why:
                print_line(
                    f"the decoded images are not kept ({error}), and each run decodes them again: "
                    "write --cache-dir FOLDER, --cache-gb N, or --no-cache"
                )
            self._has_said_why = True
            return None
