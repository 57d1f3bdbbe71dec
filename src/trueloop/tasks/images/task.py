"""Images: a folder with one folder of images per class."""

from __future__ import annotations

import hashlib
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, TensorDataset

from trueloop.errors import ConfigError, DataError, nearest
from trueloop.names import printable
from trueloop.option import option
from trueloop.run import Figures
from trueloop.tasks.base import PredictInput, Splits, Task
from trueloop.tasks.data_findings import DataFinding, rare_class
from trueloop.tasks.images import resnet
from trueloop.tasks.images.augment import Augment
from trueloop.tasks.images.checks import shared_images
from trueloop.tasks.images.decode import ImageShape, choose_form
from trueloop.tasks.images.image_cache import CachedImages, CacheLocation, former_form
from trueloop.tasks.images.image_folder import (
    Listing,
    check_folder,
    find_classes,
    find_parts,
    images_below,
    list_images,
)
from trueloop.tasks.images.image_loading import ImageLoader, ImageSubset, fingerprints_of
from trueloop.tasks.images.memory import images_of
from trueloop.tasks.images.resnet import ResNet
from trueloop.tasks.limits import MOST_CHANNELS, MOST_GIGABYTES, MOST_SIDE, check_range
from trueloop.tasks.mistakes import show_mistakes
from trueloop.tasks.option_docs import documented
from trueloop.tasks.recipe import Recipe

BROKEN = ("stop", "skip")
_AT_ONCE = 65_536


class Images(Task):
    """Classification of images: a folder of class folders, or of train/ and test/ (or val/)."""

    recipe = Recipe(
        epochs=20,
        batch_size=128,
        optimizer="adamw",
        lr=3e-3,
        weight_decay=0.05,
        schedule="warmup_cosine",
        warmup="15%",
        clip_norm=1.0,
        monitor="val_accuracy",
    )

    random_weights = True
    smaller = "--batch-size, --size or --width"

    @documented
    @dataclass(kw_only=True)
    class Options:
        """Options of the images task."""

        size: int | None = option(
            None, usual=True, group="images", unit="pixels", unset="by the images"
        )
        """Side of every image. It is scaled and cropped to that."""
        broken: str = option("stop", usual=True, choices=("stop", "skip"))
        """If an image cannot be decoded. A skipped one is named on the console,
        in the report and in data.json."""
        augment: bool = option(True, usual=True)
        """Shift, mirror or turn training images at random."""
        mirror: bool | None = option(None, unset="only colour images")
        """Mirror left to right in augmentation."""
        width: int | None = option(None, unset="32 for grey, 48 for colour")
        """Channels of the network's first stage."""
        val_share: float = option(0.1, usual=True)
        """Share for validation. Of the training images; it chooses the best epoch; a val folder
        takes its place."""
        test_share: float = option(0.1, usual=True)
        """Share for the test. train and test folders take its place."""
        memory_gb: float = option(2.0, group="memory and disk", unit="GB")
        """Without a disk cache: decode up to this much of the images into memory; the rest is
        decoded again in each epoch."""
        cache: bool = option(True)
        """Cache the decoded images on disk for later epochs and runs."""
        cache_dir: str | None = option(None, unset="$TRUELOOP_CACHE, or the user's cache folder")
        """The folder of the cache."""
        cache_gb: float = option(20.0, unit="GB")
        """Limit for the decoded images of all data sets; the least recently used are removed
        first."""

    options: Options

    def splits(self) -> Splits:
        self._check_options()
        if self.data is None:
            raise ConfigError("the images task needs a folder: write --data FOLDER")
        folders = find_parts(self.data)
        main = folders.get("train") or folders["all"]
        self.classes = find_classes(main)
        listings = {
            name: list_images(folder, self.classes, every_class=folder == main)
            for name, folder in folders.items()
        }
        self.form = self._chosen_form(next(iter(listings.values())))
        skip = self.options.broken == "skip"
        loader = self._loader(skip=skip, keep=True, chosen_for=[self.options.size])
        parts = self._divide({name: loader.load(one, name) for name, one in listings.items()})
        self.skipped = loader.skipped
        self.digest = _digest(self.data, parts)
        self.mean, self.std = parts["train"].statistics()
        self.recipe = suited_to(len(parts["train"]), self.form)
        facts = self._facts(parts)
        if loader.skipped:
            facts["broken images, skipped"] = len(loader.skipped)
        if ignored := sum(listing.ignored for listing in listings.values()):
            facts["files that are not images, ignored"] = ignored
        return Splits(
            train=parts["train"].for_feed(),
            val=parts["val"].for_feed(),
            test=parts["test"].for_feed() if "test" in parts else None,
            augment=self._augment(),
            facts=facts,
            findings=self._findings(parts, listings),
        )

    def model(self) -> nn.Module:
        net = ResNet(**self.network())
        return net.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]

    def network(self) -> dict[str, Any]:
        """The arguments of `ResNet` for these data: plain values, kept in `task.json`."""
        return {
            "channels": self.form.channels,
            "size": [self.form.height, self.form.width],
            "classes": len(self.classes or []),
            "width": self.options.width or (32 if self.form.channels == 1 else 48),
            "mean": self.mean,
            "std": self.std,
        }

    def example_inputs(self, samples: int) -> tuple[Tensor, ...]:
        form = self.form
        return (torch.empty(samples, form.channels, form.height, form.width, dtype=torch.uint8),)

    def standalone(self) -> dict[str, Path]:
        from trueloop.tasks.standalone import image_files

        return {"network.py": Path(resnet.__file__), "predict.py": Path(image_files.__file__)}

    def state(self) -> dict[str, Any]:
        return {
            **super().state(),
            "form": asdict(self.form),
            "mean": self.mean,
            "std": self.std,
            "options": asdict(self.options),
            "network": self.network(),
            "digest": self.digest,
        }

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.form = ImageShape(**state["form"])
        self.mean = list(state["mean"])
        self.std = list(state["std"])
        self.digest = state.get("digest")
        self.options = self.Options(**state["options"])

    def read(self, path: Path) -> Dataset[Any]:
        """Labelled images: a folder of class folders, or one with test/ (or else val/).

        Images that cannot be decoded are skipped; `skipped` names them.
        """
        folders = find_parts(path)
        folder = folders.get("test") or folders.get("val") or folders.get("all")
        if folder is None:
            raise DataError(
                f"{path} contains only training images: give a folder with one folder of images "
                "per "
                f"class, e.g. {path / 'test'}"
            )
        listing = list_images(folder, self.classes or [], every_class=False)
        loader = self._loader(skip=True, keep=True)
        part = loader.load(listing, printable(folder.name))
        self.skipped = loader.skipped
        return part.for_feed()

    def unseen(self, path: Path) -> PredictInput:
        """One image, or all images below a folder, named by their place in it (as `printable`
        writes it)."""
        if path.is_file():
            paths, names = [str(path)], [path.name]
        else:
            check_folder(path)
            paths = images_below(path).paths
            names = [Path(one).relative_to(path).as_posix() for one in paths]
        if not paths:
            raise DataError(f"{path} contains no image: give an image or a folder with images")
        return self._unseen(paths, names)

    def unseen_in_memory(self, data: Any) -> PredictInput:
        """The same for images in the program's memory (see `memory.images_of`), numbered from 1, or
        for a list of their files."""
        if (
            isinstance(data, (list, tuple))
            and data
            and all(isinstance(each, (str, Path)) for each in data)
        ):
            return self._unseen([str(each) for each in data], [str(each) for each in data])
        images = images_of(data, self.form)
        return PredictInput(inputs=images, names={"row": list(range(1, len(images) + 1))})

    def _unseen(self, paths: list[str], names: list[str]) -> PredictInput:
        loader = self._loader(skip=True, keep=False)
        nothing = np.zeros((len(paths), 3), dtype=np.int64)
        part = loader.load(Listing(paths, nothing[:, 0], nothing), "images")
        return PredictInput(
            inputs=part.without_labels(),
            names={"file": [printable(name) for name in names]},
            errors=loader.broken,
        )

    def pictures(
        self, model: nn.Module, splits: Splits, outputs: Tensor, targets: Tensor, album: Figures
    ) -> None:
        def image_of(row: int) -> Tensor:
            image: Tensor = splits.val[row][0]
            return image

        show_mistakes(outputs, targets, image_of, self.classes or [], album)

    def _place(self) -> CacheLocation | None:
        options = self.options
        place = CacheLocation(folder=options.cache_dir, budget=options.cache_gb * 1e9)
        return place if options.cache else None

    def _chosen_form(self, listing: Listing) -> ImageShape:
        place, size = self._place(), self.options.size
        former = None if place is None else former_form(listing, size, place)
        return former or choose_form(listing.paths, size)

    def _loader(
        self, *, skip: bool, keep: bool, chosen_for: list[int | None] | None = None
    ) -> ImageLoader:
        return ImageLoader(
            self.form,
            memory=self.options.memory_gb * 1e9,
            place=self._place() if keep else None,
            chosen_for=chosen_for,
            skip=skip,
            quiet=self.quiet,
        )

    def _check_options(self) -> None:
        options = self.options
        if options.broken not in BROKEN:
            raise ConfigError(
                f"--broken {options.broken!r} is unknown: {nearest(options.broken, BROKEN)}"
            )
        check_range("--size", options.size, 8, MOST_SIDE, unit="pixels", example=64)
        check_range("--width", options.width, 2, MOST_CHANNELS, unit="channels", example=32)
        check_range("--memory-gb", options.memory_gb, 0, MOST_GIGABYTES, unit="GB", example=2)
        check_range("--cache-gb", options.cache_gb, 0, MOST_GIGABYTES, unit="GB", example=20)
        for name in ("val_share", "test_share"):
            share = getattr(options, name)
            if not 0 < share < 0.5:
                option = name.replace("_", "-")
                raise ConfigError(f"--{option} must be between 0 and 0.5, not {share:g}: write 0.1")

    def _divide(self, loaded: dict[str, ImageSubset]) -> dict[str, ImageSubset]:
        """Train, val and maybe test: as the folders say, and where they do not, by the seed."""
        parts = dict(loaded)
        if "all" in parts:
            everything = parts.pop("all")
            shares = [self.options.test_share, self.options.val_share]
            parts["train"], parts["test"], parts["val"] = everything.divide(
                shares, self.seed, self.fold
            )
        elif "val" not in parts:
            shares = [self.options.val_share]
            parts["train"], parts["val"] = parts["train"].divide(shares, self.seed, self.fold)
        elif self.fold is not None:
            raise ConfigError(
                f"--folds chooses the validation images, and {self.data} has a folder for them: "
                "move its images into train/, or write --repeats 5 instead"
            )
        for name, part in parts.items():
            if len(part) == 0:
                raise DataError(
                    f"there are too few images for {name}: give 10 or more of each class"
                )
        present = set(parts["train"].labels.tolist())
        for label, name in enumerate(self.classes or []):
            if label not in present:
                raise DataError(
                    f"the class {name!r} has no image left that can be decoded: add images or "
                    "remove its folder"
                )
        return parts

    def _augment(self) -> Augment | None:
        if not self.options.augment:
            return None
        grey = self.form.channels == 1
        mirror = not grey if self.options.mirror is None else self.options.mirror
        return Augment(warp=grey, mirror=mirror)

    def _findings(
        self, parts: dict[str, ImageSubset], listings: dict[str, Listing]
    ) -> list[DataFinding]:
        counts = np.bincount(parts["train"].labels, minlength=len(self.classes or []))
        found = rare_class(dict(zip(self.classes or [], counts.tolist(), strict=True)))
        prints = fingerprints_of(parts)
        if prints is None:
            return found  # to decode all others once more would cost as much as an epoch
        return [*shared_images(prints, by_folder=len(listings) > 1), *found]

    def _facts(self, parts: dict[str, ImageSubset]) -> dict[str, Any]:
        data = parts["train"].data
        counts = np.bincount(parts["train"].labels, minlength=len(self.classes or []))
        colour = "grey" if self.form.channels == 1 else "colour"
        return {
            "folder": printable(str(self.data)),
            "images": {n: len(parts[n]) for n in ("train", "val", "test") if n in parts},
            "size": f"{self.form.width}×{self.form.height}, {colour}",
            "training images of each class": dict(
                zip(self.classes or [], counts.tolist(), strict=True)
            ),
            "kept in memory": isinstance(data, TensorDataset),
            **({"kept in": str(data.folder)} if isinstance(data, CachedImages) else {}),
        }


def _digest(root: Path, parts: dict[str, ImageSubset]) -> str:
    """Of the names and sizes of the images, and of the parts that they are in."""
    digest = hashlib.sha256()
    above = "" if root == Path() else os.path.join(root, "")
    for name, part in parts.items():
        paths, sizes = part.listing.paths, part.listing.status[:, 0].tolist()
        for start in range(0, len(part), _AT_ONCE):
            rows = part.rows[start : start + _AT_ONCE].tolist()
            assert all(paths[row].startswith(above) for row in rows)
            facts = [f"{name} {paths[row][len(above) :]} {sizes[row]}\0" for row in rows]
            digest.update(os.fsencode("".join(facts)))
    return digest.hexdigest()


def suited_to(images: int, form: ImageShape) -> Recipe:
    """The task's recipe for so many training images: on a CPU, minutes rather than hours.

    The fewer the images, the more epochs; colour takes more than grey.
    """
    visits = 300_000 if form.channels == 1 else 540_000
    epochs = min(60, max(5, round(visits / images)))
    batch_size = 128 if images >= 5_000 else min(32, images)
    return replace(Images.recipe, epochs=epochs, batch_size=batch_size)
