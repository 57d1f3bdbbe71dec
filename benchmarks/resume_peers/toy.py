"""The training that every trainer of `resume_vs_peers.py` is given, and how its losses are counted.

60 updates of a small network, three epochs of 20 shuffled batches, no workers: what is easiest to
resume. A process is one part of a trial:

- `straight`: all 60 updates; a checkpoint is written after update 27, as in the other parts;
- `stopped`: the same, killed by SIGKILL in the forward pass of update 28;
- `resumed`: the same script started anew, told to go on from the checkpoint.

Losses are noted by the criterion itself, so that no trainer's logging, averaging or rounding comes
between.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

SEED = 0
LR = 1e-2
BATCH = 16
BATCHES = 20
EPOCHS = 3
UPDATES = BATCHES * EPOCHS
STOP = 27
DATA = ("plain", "dropout", "augmented")


class Samples(Dataset[tuple[Tensor, Tensor]]):
    """Points of 8 numbers in 3 classes; `augmented`: changed anew whenever they are fetched, with
    draws from the three global generators, as transforms do."""

    def __init__(self, augmented: bool) -> None:
        generator = torch.Generator().manual_seed(1)
        self.labels = torch.randint(3, (BATCH * BATCHES,), generator=generator)
        noise = torch.randn(len(self.labels), 8, generator=generator)
        self.points = noise + F.one_hot(self.labels, 8)
        self.augmented = augmented

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        point = self.points[index]
        if self.augmented:
            point = point * float(np.random.uniform(0.9, 1.1)) + 0.1 * torch.randn(8)
            point = point.flip(0) if random.random() < 0.1 else point
        return point, self.labels[index]


class Trial:
    """One part of one trial, as the command line of a trainer's script names it."""

    def __init__(self, *ways: str) -> None:
        parser = argparse.ArgumentParser()
        parser.add_argument("way", choices=ways)
        parser.add_argument("data", choices=DATA)
        parser.add_argument("part", choices=("straight", "stopped", "resumed"))
        parser.add_argument("folder", type=Path, help="for the trainer's checkpoints")
        parser.add_argument("out", type=Path, help="the JSON file that the losses go to")
        given = parser.parse_args()
        self.way: str = given.way
        self.data: str = given.data
        self.part: str = given.part
        self.folder: Path = given.folder
        self.out: Path = given.out
        self.resumes = given.part == "resumed"
        self.losses: list[str] = []
        self.before_kill: Callable[[], None] | None = None
        self.fsyncs = 0
        self._count_fsyncs()
        torch.set_num_threads(1)

    def model(self) -> nn.Module:
        dropout = nn.Dropout(0.2 if self.data == "dropout" else 0.0)
        return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), dropout, nn.Linear(32, 3))

    def samples(self) -> Samples:
        return Samples(self.data == "augmented")

    def loader(self, workers: int = 0) -> DataLoader[tuple[Tensor, Tensor]]:
        return DataLoader(self.samples(), batch_size=BATCH, shuffle=True, num_workers=workers)

    def criterion(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Cross-entropy, noted to the last bit; where a stopped part is killed."""
        if self.part == "stopped" and len(self.losses) == STOP:
            self._kill()
        loss = F.cross_entropy(logits, targets)
        self.losses.append(float(loss.detach()).hex())
        return loss

    def finish(self, model: nn.Module) -> None:
        state = model.state_dict()
        stored = b"".join(state[name].numpy().tobytes() for name in sorted(state))
        self._write(hashlib.sha256(stored).hexdigest())

    def _kill(self) -> None:
        if self.before_kill is not None:
            self.before_kill()
        self._write(None)
        os.kill(os.getpid(), signal.SIGKILL)

    def _write(self, weights: str | None) -> None:
        found = {"losses": self.losses, "weights": weights, "fsyncs": self.fsyncs}
        self.out.write_text(json.dumps(found), encoding="utf-8")

    def _count_fsyncs(self) -> None:
        for name in ("fsync", "fdatasync"):
            setattr(os, name, self._counted(getattr(os, name)))

    def _counted(self, flush: Callable[[int], None]) -> Callable[[int], None]:
        def counted(file: int) -> None:
            self.fsyncs += 1
            flush(file)

        return counted
