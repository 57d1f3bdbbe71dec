"""Epochs over 20,000 of MNIST's PNG files with a small convolutional network.

1 × 28 × 28 → 8 and 16 channels (3 × 3, stride 2) → 10, batches of 128, Adam. By hand: a `Dataset`
whose `__getitem__` opens the file with Pillow, in a shuffled `DataLoader` with two workers that
stay. Ours: the images task's data and `Feed`. A first epoch begins with the list of files; ours
with an empty cache directory, and, as `second run`, with the one that a run before it has left.
2,000 more images are for validation: ours reads them too in its first epoch, the other does not.
The floor is forward, backward and a fused Adam step on one batch, again and again: no data at all.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from side_by_side.workload import (
    COMPILED,
    MEMORY,
    OURS,
    Figure,
    Goal,
    LeftOutError,
    Settings,
    Turn,
    Workload,
)

BATCH, WORKERS, LR = 128, 2, 1e-3
FIRST, LATER = "first epoch, s", "later epoch, s"


def folder(settings: Settings) -> Path:
    """`train/` and `val/` with so many images of each class, unpacked once."""
    per_class = (50, 20) if settings.quick else (2000, 200)
    root = settings.scratch / f"mnist-{per_class[0]}"
    archive = settings.data / "mnist-png.tar.gz"
    if not archive.exists():
        raise LeftOutError(f"there is no {archive}: write --data FOLDER")
    with open(settings.scratch / "mnist.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the contenders start together
        if not root.exists():
            unpack(archive, root, per_class)
    return root


def unpack(archive: Path, root: Path, per_class: tuple[int, int]) -> None:
    """So many images of each class for `train/` and `val/`."""
    counts: dict[str, int] = {}
    making = Path(tempfile.mkdtemp(dir=root.parent))
    with tarfile.open(archive) as tar:
        for member in tar:
            place = Path(member.name)
            if not member.isfile() or place.parts[0] != "train":
                continue
            label = place.parts[1]
            number = counts[label] = counts.get(label, 0) + 1
            if number > sum(per_class):
                continue
            target = making / ("train" if number <= per_class[0] else "val") / label / place.name
            target.parent.mkdir(parents=True, exist_ok=True)
            source = tar.extractfile(member)
            assert source is not None
            target.write_bytes(source.read())
    making.rename(root)


def make_model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 7 * 7, 10),
    )


class Files(Dataset[tuple[Tensor, int]]):
    """Each image is opened and decoded when it is asked for."""

    def __init__(self, root: Path) -> None:
        classes = sorted(one.name for one in root.iterdir())
        self.samples = [
            (path, label)
            for label, name in enumerate(classes)
            for path in sorted((root / name).iterdir())
        ]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        import numpy as np
        from PIL import Image

        path, label = self.samples[index]
        with Image.open(path) as image:
            pixels = np.array(image.convert("L"), dtype=np.float32) / 255
        return torch.from_numpy(pixels).unsqueeze(0), label


def by_hand(settings: Settings) -> Turn:
    root = folder(settings)

    def turn() -> dict[str, float]:
        model, criterion = make_model(), nn.CrossEntropyLoss()
        optimizer = torch.optim.Adam(model.parameters(), lr=LR)
        started = time.perf_counter()
        batches = DataLoader(
            Files(root / "train"), BATCH, shuffle=True, num_workers=WORKERS, persistent_workers=True
        )

        def epoch() -> None:
            for inputs, targets in batches:
                optimizer.zero_grad()
                criterion(model(inputs), targets).backward()
                optimizer.step()

        epoch()
        between = time.perf_counter()
        epoch()
        return {FIRST: between - started, LATER: time.perf_counter() - between}

    return turn


def floor(settings: Settings) -> Turn:
    images = 500 if settings.quick else 20_000

    def turn() -> dict[str, float]:
        model, criterion = make_model(), nn.CrossEntropyLoss()
        parameters = list(model.parameters())
        optimizer = torch.optim.Adam(parameters, lr=LR, fused=True)
        generator = torch.Generator().manual_seed(0)
        inputs = torch.rand(BATCH, 1, 28, 28, generator=generator)
        targets = torch.randint(10, (BATCH,), generator=generator)

        def epoch() -> float:
            started = time.perf_counter()
            for _ in range(-(-images // BATCH)):
                criterion(model(inputs), targets).backward()
                optimizer.step()
                for parameter in parameters:
                    parameter.grad = None
            return time.perf_counter() - started

        return {FIRST: epoch(), LATER: epoch()}

    return turn


def ours(settings: Settings, *, again: bool = False, **options: Any) -> Turn:
    """With `options` of the step; `again`: what a run before has left in the cache is there."""
    import trueloop
    from trueloop.tasks.images import Images

    root = folder(settings)
    places = tempfile.TemporaryDirectory(dir=settings.scratch)
    numbers = itertools.count()
    criterion = nn.CrossEntropyLoss()

    def loss_fn(model: nn.Module, batch: Any) -> Tensor:
        inputs, targets = batch
        loss: Tensor = criterion(model(inputs.float().div_(255)), targets)
        return loss

    def turn() -> dict[str, float]:
        number = 0 if again else next(numbers)
        os.environ["XDG_CACHE_HOME"] = str(Path(places.name, str(number)))
        model = make_model()
        step = trueloop.Step(model, trueloop.optimizers.adam(model, LR), loss_fn, **options)
        started = time.perf_counter()
        task = Images(Images.Options(augment=False), data=root)
        task.quiet = True
        train = trueloop.Feed(task.splits().train, BATCH, shuffle=True)

        def epoch(number: int) -> None:
            for batch in train.epoch(number):
                step(batch)
            step.end_epoch()

        epoch(0)
        between = time.perf_counter()
        epoch(1)
        return {FIRST: between - started, LATER: time.perf_counter() - between}

    return turn


AGAIN = "trueloop, second run"
WORKLOAD = Workload(
    title="an epoch over 20,000 of MNIST's PNG files, small convolutional network",
    figures=(Figure(LATER, digits=2), Figure(FIRST, digits=2), Figure(MEMORY, digits=0)),
    contenders={
        OURS: ours,
        AGAIN: lambda settings: ours(settings, again=True),
        COMPILED: lambda settings: ours(settings, again=True, compile="step"),
        "by hand": by_hand,
        "floor": floor,
    },
    goals=(
        Goal("times as fast as by hand, later epochs", LATER, "by hand", OURS, at_least=8),
        Goal("times as fast as by hand, first epoch", FIRST, "by hand", OURS, at_least=1),
        Goal(
            "a second run's first epoch: times the time of a later one",
            FIRST,
            AGAIN,
            AGAIN,
            at_most=1.25,
            under_figure=LATER,
        ),
    ),
)
