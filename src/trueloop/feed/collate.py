"""A batch made of a list of samples, and the reason where they do not go together."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import default_collate, get_worker_info

from trueloop import _options
from trueloop.errors import DataError, UserError

Collate = Callable[[list[Any]], Any]

_PAD = (
    "pass collate_fn, e.g. collate_fn=lambda samples: "
    "torch.nn.utils.rnn.pad_sequence(samples, batch_first=True)"
)
_PAD_PART = (
    "pass a collate_fn that makes the batch, and pads this part with "
    "torch.nn.utils.rnn.pad_sequence"
)
_OWN = "pass a collate_fn that makes the batch"
_PLAIN = (int, float, str, bytes)


class FetchedSamples(list[Any]):
    """The samples of one batch, which know their indices."""

    def __init__(self, samples: list[Any], indices: Sequence[int]) -> None:
        super().__init__(samples)
        self.indices = indices


@dataclass
class SampleFailure:
    """The result of a fetch in place of samples, or of a batch, if the user's code raised."""

    message: str
    cause: BaseException | None

    def error(self) -> DataError:
        """The error to raise, in the process that trains."""
        error = DataError(self.message)
        error.__cause__ = self.cause
        return error


def failure(message: str, error: Exception) -> SampleFailure:
    """`error` as something that can travel: not every exception survives the way between
    processes; its traceback as text does."""
    if get_worker_info() is None:
        return SampleFailure(message, error)
    trace = "".join(traceback.format_exception(error))
    return SampleFailure(message, RuntimeError(f"in a worker process:\n{trace}"))


def reason_of(error: BaseException) -> str:
    """An exception as one line: the message of ours, kind and message of others."""
    text = " ".join(str(error).split())
    if isinstance(error, UserError):
        return text
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__


class Collator:
    """The user's collate function (None: torch's `default_collate`); a `SampleFailure` passes it
    untouched."""

    def __init__(self, collate_fn: Collate | None) -> None:
        self._collate_fn = collate_fn

    def __call__(self, samples: Any) -> Any:
        if isinstance(samples, SampleFailure):
            return samples
        if samples and isinstance(samples[-1], SampleFailure):
            return samples[-1]
        try:
            if self._collate_fn is None:
                batch = default_collate(samples)
            else:
                batch = self._collate_fn(samples)
        except Exception as error:
            return failure(self._problem(error, samples), error)
        if batch is None:
            return SampleFailure("collate_fn returned None: end it with `return batch`", None)
        if isinstance(batch, Iterator):
            return SampleFailure(
                f"collate_fn returned {_options.kind_of(batch)}, which is used up by whoever reads "
                "it first: return a list of it",
                None,
            )
        if get_worker_info() is not None and (problem := unsendable(batch)):
            return SampleFailure(problem, None)
        return batch

    def _problem(self, error: Exception, samples: list[Any]) -> str:
        names = _names(samples)
        if self._collate_fn is not None:
            return (
                f"collate_fn cannot make a batch of {names[0]} to {names[-1]}, "
                f"{reason_of(error)}: fix it; it is called with a list of samples"
            )
        return difference(samples, names) or (
            f"{names[0]} to {names[-1]} do not make a batch, {reason_of(error)}: {_OWN}"
        )


def _names(samples: list[Any]) -> list[str]:
    if isinstance(samples, FetchedSamples):
        return [f"sample {index}" for index in samples.indices]
    return [f"sample {number} of the batch" for number in range(len(samples))]


def difference(samples: Sequence[Any], names: Sequence[str], where: str = "") -> str | None:
    """Why `default_collate` does not take these samples (or their parts at `where`), with what to
    write; None if it takes them, or why it does not is not found."""
    if _makes_batch(samples):
        return None
    first, kinds = samples[0], [_kind(sample) for sample in samples]
    missing = [name for name, sample in zip(names, samples, strict=True) if sample is None]
    if missing:
        return f"{missing[0]}{where} is None: let __getitem__ return something else, or {_OWN}"
    for name, sample, kind in zip(names, samples, kinds, strict=True):
        if kind != kinds[0]:
            return (
                f"{names[0]}{where} is {_options.kind_of(first)} and {name}{where} is "
                f"{_options.kind_of(sample)}: return the same structure for each sample, or {_OWN}"
            )
    if isinstance(first, Mapping):
        return _of_mappings(samples, names, where)
    if isinstance(first, (Tensor, np.ndarray)):
        return _of_arrays(samples, names, where)
    if isinstance(first, (tuple, list)):
        return _of_sequences(samples, names, where)
    remedy = f"let __getitem__ return tensors, arrays, numbers, dicts or tuples, or {_OWN}"
    if type(first).__module__.startswith("PIL"):
        remedy = "let __getitem__ return torchvision.transforms.functional.to_tensor(image)"
    elif isinstance(first, (complex, int)):
        remedy = "let __getitem__ return a tensor of it"
    return f"{names[0]}{where} is {_options.kind_of(first)}, which makes no batch: {remedy}"


def _makes_batch(samples: Sequence[Any]) -> bool:
    try:
        default_collate(list(samples))
    except Exception:
        return False
    return True


def _kind(sample: Any) -> object:
    """The properties that samples need to have in common to form a batch; all numbers are of one
    kind."""
    for kind in (Tensor, np.ndarray, Mapping, str, bytes):
        if isinstance(sample, kind):
            return kind
    return float if isinstance(sample, (int, float, np.number)) else type(sample)


def _of_mappings(samples: Sequence[Any], names: Sequence[str], where: str) -> str | None:
    for name, sample in zip(names, samples, strict=True):
        if set(sample) != set(samples[0]):
            keys = [", ".join(sorted(map(repr, each))) for each in (samples[0], sample)]
            return (
                f"{names[0]}{where} has the keys {keys[0]} and {name}{where} has {keys[1]}: "
                f"return the same keys for each sample, or {_OWN}"
            )
    parts = ((key, [sample[key] for sample in samples]) for key in samples[0])
    return _first_problem(parts, names, where)


def _of_sequences(samples: Sequence[Any], names: Sequence[str], where: str) -> str | None:
    for name, sample in zip(names, samples, strict=True):
        if len(sample) != len(samples[0]):
            numbers = all(isinstance(part, (int, float)) for part in (*samples[0], *sample))
            return (
                f"{names[0]}{where} has the length {len(samples[0])} and {name}{where} has "
                f"{len(sample)}: return one length for all samples, or "
                + (f"tensors of them, and {_PAD_PART if where else _PAD}" if numbers else _OWN)
            )
    return _first_problem(enumerate(zip(*samples, strict=True)), names, where)


def _first_problem(parts: Any, names: Sequence[str], where: str) -> str | None:
    for key, part in parts:
        if problem := difference(part, names, f"{where}[{key!r}]"):
            return problem
    return None


def _of_arrays(samples: Sequence[Any], names: Sequence[str], where: str) -> str | None:
    for name, sample in zip(names, samples, strict=True):
        here = f"{name}{where}"
        if isinstance(sample, Tensor) and sample.layout is not torch.strided:
            return f"{here} is a {sample.layout} tensor: let __getitem__ return tensor.to_dense()"
        if isinstance(sample, Tensor) and sample.requires_grad and get_worker_info() is not None:
            return (
                f"{here} is a tensor with a graph, which no worker process can send: let "
                "__getitem__ return tensor.detach(), or write workers=0"
            )
        if isinstance(sample, np.ndarray) and sample.dtype.kind not in "biufc":
            return (
                f"{here} is an array of dtype {sample.dtype}: let __getitem__ return numbers, e.g. "
                "array.astype('float32')"
            )
        if sample.shape != samples[0].shape:
            shapes = [tuple(each.shape) for each in (samples[0], sample)]
            return (
                f"{names[0]}{where} has the shape {shapes[0]} and {here} has {shapes[1]}: return "
                f"one shape for all samples, or {_PAD_PART if where else _PAD}"
            )
        if isinstance(sample, Tensor) and sample.device != samples[0].device:
            return (
                f"{names[0]}{where} is on {samples[0].device} and {here} on {sample.device}: "
                "return samples on the CPU, and write Feed(..., device=...)"
            )
    return None


def unsendable(batch: Any, where: str = "") -> str | None:
    """Why a batch cannot be sent from a worker process; None if it can.

    What cannot be pickled is lost in a thread of the worker, and the process that trains would
    wait for it for ever.
    """
    if isinstance(batch, Tensor):
        if batch.requires_grad and not batch.is_leaf:
            return (
                f"the batch{where} is a tensor with a graph, which no worker process can send: let "
                "__getitem__ return tensor.detach(), or write workers=0"
            )
        return None
    if batch is None or isinstance(batch, (*_PLAIN, np.ndarray)):
        return None
    if type(batch) is dict:
        inner: Any = batch.items()
    elif type(batch) in (tuple, list):
        inner = enumerate(batch)
    else:
        return _unpicklable(batch, where)
    for key, part in inner:
        if problem := unsendable(part, f"{where}[{key!r}]"):
            return problem
    return None


def _unpicklable(part: Any, where: str) -> str | None:
    try:
        ForkingPickler.dumps(part)
    except (pickle.PicklingError, AttributeError, TypeError, RuntimeError) as error:
        return (
            f"the batch{where} is {_options.kind_of(part)}, which no worker process can send "
            f"({reason_of(error)}): return tensors and plain data, or write workers=0"
        )
    return None
