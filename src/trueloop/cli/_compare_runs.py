"""Whether two runs are one: their states and logs compared bit by bit, and why they may differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trueloop.checkpoint import load_checkpoint
from trueloop.cli._segments import MicroBatch, Trace
from trueloop.run import Run

_SECTIONS = {
    "model": "weights",
    "train_weights": "weights of train mode",
    "average": "average of the weights",
    "optimizer": "optimizer",
    "precision": "loss scaler",
    "schedule": "schedule",
    "window": "accumulation window",
    "gradients": "gradients of the window",
    "counters": "counters",
    "options": "options",
    "rng": "random generators",
    "feed": "feed",
    "early_stop": "early stopping",
    "train_loss": "training loss",
    "train": "training scores",
    "best": "best score",
    "best_update": "its update",
    "records": "scores",
    "clock": "counts of the run",
    "line": "open line of the log",
    "named": "state of the task's own",
}
"""Parts of a checkpoint's state in the order of the report; any other by its own name."""


@dataclass(frozen=True)
class Difference:
    """One thing that is not the same in two runs."""

    where: str
    """A line of the log (`log` for an update's, `evaluation`), or a part of the state: `weights`,
    `optimizer`, …"""
    what: str


@dataclass(frozen=True)
class Divergence:
    """The first micro-batch at which two traces differ, and in what."""

    index: int
    field: str
    """A field of `MicroBatch`, or `end` where one of the traces has no such micro-batch."""
    place: str


def compare(straight: Path, other: Path) -> list[Difference]:
    """The differences between two runs' logs and last checkpoints, apart from times; one line
    each."""
    found = list(_log_differences(straight, other))
    return found + list(state_differences(final_state(straight), final_state(other)))


def final_state(run: Path) -> dict[str, Any]:
    """The run's last checkpoint by its sections, without what a clock has written."""
    state = load_checkpoint(Run(run).checkpoints, which="last", map_location="cpu")
    state |= state.pop("step")
    del state["seconds"]
    state["records"] = [record[:-1] for record in state["records"]]  # its last entry is a time
    order = {name: k for k, name in enumerate(_SECTIONS)}
    return dict(sorted(state.items(), key=lambda item: order.get(item[0], len(order))))


def _log_differences(straight: Path, other: Path) -> Iterator[Difference]:
    """The first line that differs."""
    a, b = log_of(straight), log_of(other)
    for number, (one, two) in enumerate(zip(a, b, strict=False), start=1):
        names = [n for n in {**one, **two} if repr(one.get(n)) != repr(two.get(n))]
        if names:
            name, where = names[0], f"line {number}, epoch {one['epoch']}, update {one['update']}"
            what = f"{where}: {name} {one.get(name)} straight, {two.get(name)} here"
            yield Difference("evaluation" if one["kind"] == "eval" else "log", what)
            return
    if len(a) != len(b):
        yield Difference("log", f"{len(a)} lines straight, {len(b)} here")


def log_of(run: Path) -> list[dict[str, Any]]:
    """The lines of the run's log without times."""
    return [
        {name: value for name, value in line.items() if name not in ("time", "seconds")}
        for line in Run(run).metrics()
    ]


def state_differences(a: dict[str, Any], b: dict[str, Any]) -> Iterator[Difference]:
    """One line for each section of the state that differs: the first place in it, and how many."""
    for section in {**a, **b}:
        places = list(_places(a.get(section), b.get(section), ""))
        if places:
            path, what = places[0]
            more = f", and {len(places) - 1} more" if len(places) > 1 else ""
            name = f"{path.lstrip('.')}: " if path else ""
            yield Difference(_SECTIONS.get(section, section), f"{name}{what}{more}")


def _places(a: Any, b: Any, path: str) -> Iterator[tuple[str, str]]:
    """Where two nested values differ, and by how much, in their own order."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in {**a, **b}:
            if key in a and key in b:
                yield from _places(a[key], b[key], f"{path}.{key}")
            else:
                yield f"{path}.{key}", "only in one of them"
    elif isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and len(a) == len(b):
        for k, (one, two) in enumerate(zip(a, b, strict=True)):
            yield from _places(one, two, f"{path}.{k}")
    elif isinstance(a, Tensor) and isinstance(b, Tensor):
        if apart := _apart(a, b):
            yield path, apart
    elif type(a) is not type(b) or repr(a) != repr(b):  # so that NaN is NaN, and -0.0 is not 0.0
        yield path, f"{_short(a)} straight, {_short(b)} here"


def _apart(a: Tensor, b: Tensor) -> str:
    """How two tensors differ in their bits; empty if they do not."""
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return f"{a.dtype} {tuple(a.shape)} straight, {b.dtype} {tuple(b.shape)} here"
    flat = [t.reshape(-1).clone(memory_format=torch.contiguous_format) for t in (a, b)]
    bits = [t.unsqueeze(1).view(torch.uint8) for t in flat]
    differs = (bits[0] != bits[1]).any(dim=1)
    if not differs.any():
        return ""
    wide = torch.complex128 if a.is_complex() else torch.float64
    distance = (a.reshape(-1)[differs].to(wide) - b.reshape(-1)[differs].to(wide)).abs().max()
    return f"{int(differs.sum()):,} of {a.numel():,} entries differ, by up to {distance:.3g}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def divergence(a: list[MicroBatch], b: list[MicroBatch]) -> Divergence | None:
    """Where two traces part; None if they are one."""
    for index, (one, two) in enumerate(zip(a, b, strict=False)):
        for name in (f.name for f in fields(MicroBatch)):
            if repr(getattr(one, name)) != repr(getattr(two, name)):
                return Divergence(index, name, f"epoch {one.epoch + 1}, batch {one.batch}")
    if len(a) != len(b):
        return Divergence(
            min(len(a), len(b)), "end", f"the end, after {len(a)} batches and {len(b)}"
        )
    return None


_SEEN = {
    "epoch": "a different batch comes next",
    "batch": "a different batch comes next",
    "data": "the batch contains different data",
    "rng": "the RNG state of torch, numpy or random differs",
    "loss": "the same batch gives a different loss",
    "grad_norm": "the same loss gives a different gradient",
    "lr": "the learning rate differs",
    "update": "a different number of updates has been applied",
    "ended": "the window ends elsewhere",
    "end": "one run is longer",
}

_DATA = {
    "samples": "the data set has hidden state, which a resumed run does not have: let a sample "
    "depend only on its index and on draws from torch, numpy or random inside "
    "__getitem__, which are seeded for each sample (or on trueloop.seed.for_sample)",
    "stream": "the iterable data set does not give the same samples when a new process reads it "
    "from the beginning: reset it in __iter__ (and set_epoch), and draw only from torch, numpy or "
    "random",
    "loader": "the DataLoader cannot repeat its epoch: its data set or sampler has hidden state. "
    "Return the data set itself from the task's splits: its order is then a function",
    "arrays": "the transform of the training data (Splits.augment) has hidden state: let it draw "
    "only from `draws`",
}
_MODEL = (
    "the model or the loss has state that is not in the checkpoint (its own generator, a counter, "
    "an attribute): make it a registered buffer, name it in the task's resume_state(), or "
    "draw from torch's global generator"
)
_OF_RESUME = {
    "rng": "something besides the training draws from the global generators when a new process "
    "starts: give it its own generator",
    "lr": "the schedule has state that is not in its state_dict: add it",
    "epoch": "the data set changes its length: let __len__ be the same in every process",
    "batch": "the data set changes its length: let __len__ be the same in every process",
    "end": "the data set changes its length: let __len__ be the same in every process",
}
_UNSEEDED = (
    "the data set draws from an unseeded generator, or reads something that changes (the clock, "
    "the order of files in a folder): draw from torch, numpy or random, which are seeded, or from "
    "a generator with the task's seed"
)
_NONDETERMINISTIC = (
    "an operation of the model is not deterministic, or the model draws from a generator that "
    "nothing seeds: replace the operation, try --threads 1 (and do without --no-deterministic), or "
    "draw from torch's global generator"
)
_EVALUATION = (
    "the validation data, the loss or a metric has hidden state, since every batch before that "
    "evaluation gave the same loss: reset it for each evaluation"
)


def compared(run: Path) -> str:
    """The comparison by `compare`, if it found something to compare."""
    state = final_state(run)
    parts = [_SECTIONS.get(name, name) for name, part in state.items() if part]
    parts[0] = f"{len(state['model'])} tensors of weights"
    return ", ".join(parts) + f" and {len(log_of(run))} lines of the log"


def seen(parted: Divergence) -> str:
    """The facts visible at the place where two runs part."""
    return f"{parted.place}: {_SEEN[parted.field]}"


def cause_without_a_stop(parted: Divergence | None) -> str:
    """Why the run differs from itself, trained twice without any stop."""
    data = parted is not None and parted.field in ("epoch", "batch", "data", "end")
    why = _UNSEEDED if data else _NONDETERMINISTIC
    return f"not the resume: trained twice without a stop, it is not the same run either: {why}"


def cause_of_resume(
    parted: Divergence | None, straight: Trace, differences: list[Difference]
) -> str:
    """Why a run that repeats itself does not when it is resumed."""
    first = differences[0].where if differences else ""
    # A schedule that watches a score follows it.
    if (parted is None or parted.field == "lr") and first == "evaluation":
        return _EVALUATION
    if parted is None:
        return f"{first}: every batch gave the same loss, so it changed after the last one"
    if parted.field == "data":
        return _DATA[straight.data]
    return _OF_RESUME.get(parted.field, _MODEL)
