"""Nine small runs that between them use everything a resume has to bring back.

Each is a function that builds its model, step, feeds and stopping rule anew. Data come from fixed
seeds; the model's first weights from whatever the process was seeded with, so that a resumed
process, which is seeded otherwise, shows any weight that its checkpoint did not restore.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import Dataset, IterableDataset

from trueloop import (
    EarlyStopping,
    Feed,
    LossOutput,
    Step,
    metrics,
    optimizers,
    schedules,
    supervised,
)


@dataclass(kw_only=True)
class Setup:
    """What `fit` is called with."""

    step: Step
    train: Feed
    val: Feed
    epochs: int | None = None
    updates: int | None = None
    clock: dict[str, Any] = field(default_factory=dict)
    """A length in tokens, and what is due every so often."""
    every: str = "3 updates"
    """How often it is saved."""
    metrics: Any = None
    early_stop: EarlyStopping | None = None


def blobs(samples: int, *, noise: float = 1.0, flipped: float = 0.0) -> tuple[Tensor, Tensor]:
    """Points in the plane, (N, 2) float32, of three classes, (N,) int64; some labels are wrong."""
    generator = torch.Generator().manual_seed(samples)
    labels = torch.randint(3, (samples,), generator=generator)
    angle = labels * (2 * torch.pi / 3)
    centres = 2 * torch.stack([angle.cos(), angle.sin()], 1)
    points = centres + noise * torch.randn(samples, 2, generator=generator)
    wrong = torch.rand(samples, generator=generator) < flipped
    return points, torch.where(wrong, (labels + 1) % 3, labels)


def mlp(*, dropout: float = 0.0, width: int = 24) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(2, width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, width), nn.ReLU(),
        nn.Dropout(dropout), nn.Linear(width, 3),
    )  # fmt: skip


def feeds(samples: int, batch_size: int, **data: float) -> dict[str, Feed]:
    return {
        "train": Feed(blobs(samples, **data), batch_size, shuffle=True, seed=5),
        "val": Feed(blobs(64, **data), 32),
    }


def spiral() -> Setup:
    """AdamW, warm-up and cosine, clipping, accuracy beside the loss."""
    model = mlp()
    step = Step(
        model,
        optimizers.adamw(model, 1e-2),
        supervised(nn.CrossEntropyLoss()),
        schedule=schedules.warmup_cosine(),
        clip_norm=1.0,
    )
    accuracy = metrics.for_task("multiclass", classes=3)
    return Setup(step=step, epochs=6, metrics=accuracy, **feeds(160, 16))


class Pictures(Dataset[tuple[Tensor, int]]):
    """Squares of 8 x 8 pixels; each is mirrored, shifted and stained anew whenever it is fetched,
    by the three generators that such code draws from."""

    def __init__(self, samples: int) -> None:
        generator = torch.Generator().manual_seed(samples)
        self.labels = torch.randint(4, (samples,), generator=generator).tolist()
        self.pixels = torch.randn(samples, 1, 8, 8, generator=generator)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        label = self.labels[index]
        picture = self.pixels[index].clone()
        picture[:, label, :] += 2.0
        if torch.rand(()) < 0.5:
            picture = picture.flip(-1)
        picture = picture.roll(random.randrange(8), -1)
        return picture + 0.1 * float(np.random.standard_normal()), label


def images() -> Setup:
    """Augmentation in `__getitem__`, two workers, batch norm, one cycle of SGD."""
    model = nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(),
        nn.Linear(8 * 16, 4),
    )  # fmt: skip
    step = Step(
        model,
        optimizers.sgd(model, 0.05),
        supervised(nn.CrossEntropyLoss()),
        schedule=schedules.one_cycle(),
    )
    train = Feed(Pictures(96), 8, shuffle=True, seed=6, workers=2)
    return Setup(step=step, train=train, val=Feed(Pictures(32), 16), epochs=5)


class Reader(nn.Module):
    """Next-token logits, (B, T, 13), of token indices, (B, T)."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(13, 12)
        self.cell = nn.GRU(12, 12, batch_first=True)
        self.head = nn.Linear(12, 13, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.head(self.cell(self.embed(tokens))[0])
        return logits


def token_loss(model: nn.Module, tokens: Tensor) -> LossOutput:
    """Cross-entropy of the next token, a mean over the tokens that are no padding (0)."""
    targets = tokens[:, 1:]
    logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=0)
    return LossOutput(loss, count=(targets != 0).sum())


def sentences(samples: int) -> Tensor:
    """Token indices, (N, 10) int64, padded with 0 to lengths of all kinds."""
    generator = torch.Generator().manual_seed(samples)
    first = torch.randint(1, 13, (samples, 1), generator=generator)
    tokens = (first + 3 * torch.arange(10)) % 12 + 1
    lengths = torch.randint(2, 11, (samples, 1), generator=generator)
    return torch.where(torch.arange(10) < lengths, tokens, 0)


def text() -> Setup:
    """A mean over tokens, in windows of two; tied weights."""
    model = Reader()
    step = Step(
        model,
        optimizers.adamw(model, 1e-2),
        token_loss,
        schedule=schedules.cosine(),
        accumulate=2,
        clip_norm=1.0,
    )
    train = Feed(sentences(150), 8, shuffle=True, seed=7)
    return Setup(step=step, train=train, val=Feed(sentences(40), 16), epochs=6)


def fp16() -> Setup:
    """float16 with a scaler that grows and overflows all along the run."""
    model = mlp()
    step = Step(
        model,
        optimizers.adam(model, 1e-2),
        supervised(nn.CrossEntropyLoss()),
        schedule=schedules.step_decay(20, gamma=0.5, tick="update"),
        precision="fp16",
    )
    step.precision.scaler.set_growth_interval(4)  # type: ignore[attr-defined]
    return Setup(step=step, epochs=6, **feeds(161, 16))


def accumulate() -> Setup:
    """Windows of four micro-batches, the last of an epoch short, its last batch ragged."""
    model = mlp()
    step = Step(
        model,
        optimizers.sgd(model, 0.05),
        supervised(nn.CrossEntropyLoss()),
        schedule=schedules.warm_restarts(),
        accumulate=4,
        clip_value=0.1,
    )
    return Setup(step=step, epochs=6, **feeds(277, 8))


def mixed_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Mixup, which draws from numpy and `random` (and dropout from torch) as it trains."""
    inputs, targets = batch
    if not model.training:
        return F.cross_entropy(model(inputs), targets)
    share = float(np.random.beta(0.4, 0.4))
    turn = random.randrange(1, 8)
    logits = model(share * inputs + (1 - share) * inputs.roll(turn, 0))
    ours, others = F.cross_entropy(logits, targets), F.cross_entropy(logits, targets.roll(turn))
    return share * ours + (1 - share) * others


def dropout() -> Setup:
    """All three global generators in use in every update."""
    model = mlp(dropout=0.3)
    step = Step(model, optimizers.adamw(model, 1e-2), mixed_loss)
    return Setup(step=step, epochs=6, **feeds(160, 16))


def plateau() -> Setup:
    """A lr that falls when the score stands still, and a run that ends before its last epoch."""
    model = mlp(width=48)
    step = Step(
        model,
        optimizers.adam(model, 2e-2),
        supervised(nn.CrossEntropyLoss()),
        schedule=schedules.plateau(factor=0.5, patience=1),
    )
    stop = EarlyStopping(patience=4)
    return Setup(step=step, epochs=40, early_stop=stop, **feeds(60, 10, noise=1.5, flipped=0.2))


def tokens() -> Setup:
    """A length in tokens; evaluations, saves and lines of the log within epochs and across them,
    at moments of their own, between windows of three; a lr that falls by evaluation."""
    model = Reader()
    step = Step(
        model,
        optimizers.adamw(model, 2e-2),
        token_loss,
        schedule=schedules.plateau(factor=0.7, patience=0),
        accumulate=3,
        clip_norm=1.0,
    )
    train = Feed(sentences(150), 8, shuffle=True, seed=8)
    return Setup(
        step=step,
        train=train,
        val=Feed(sentences(40), 16),
        clock={"tokens": 10_000, "eval_every": "130 samples", "log_every": "1_000 tokens"},
        every="700 tokens",
        early_stop=EarlyStopping(patience=50),
    )


class Endless(IterableDataset[tuple[Tensor, Tensor]]):
    """A stream whose length nobody knows; each pass is longer than the last one."""

    def __init__(self) -> None:
        self.passes, self.place = 0, 0
        self.points, self.labels = blobs(400)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        while self.place < 100 + 30 * self.passes:
            self.place += 1
            yield self.points[self.place - 1], self.labels[self.place - 1]
        self.passes, self.place = self.passes + 1, 0

    def state_dict(self) -> dict[str, int]:
        return {"passes": self.passes, "place": self.place}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.passes, self.place = state["passes"], state["place"]


def stream() -> Setup:
    """A stream of unknown length, a schedule as long as the run's updates, mixup and dropout."""
    model = mlp(dropout=0.2)
    step = Step(model, optimizers.adamw(model, 1e-2), mixed_loss, schedule=schedules.cosine())
    return Setup(
        step=step,
        train=Feed(Endless(), 8, seed=9),
        val=Feed(blobs(64), 32),
        updates=110,
        clock={"eval_every": "13 updates", "log_every": "7 updates"},
        every="61 samples",
    )


CASES: dict[str, Callable[[], Setup]] = {
    case.__name__: case
    for case in (spiral, images, text, fp16, accumulate, dropout, plateau, tokens, stream)
}
