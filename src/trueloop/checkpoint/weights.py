"""Reading a model's weights from a safetensors file, which runs no code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from trueloop import _options, device as devices
from trueloop.checkpoint.export import DIGEST, FORMAT, Digest, first_line, raw, tied
from trueloop.checkpoint.layout import like_live
from trueloop.errors import RunError
from trueloop.files import cannot_read, open_regular

_LISTED = 2


class Mismatch(NamedTuple):
    """A weight that both sides have, and that does not fit.

    Attributes:
        name: name of the weight.
        in_file: its shape (a tuple) where the shapes differ, its dtype where only the dtypes do,
            else text.
        in_model: the same of the model's.
    """

    name: str
    in_file: Any
    in_model: Any


@dataclass(frozen=True)
class LoadReport:
    """The names that `load_weights` has loaded, and the rest; as `str`, a table of the rest.

    Attributes:
        path: the file.
        loaded: names whose values are the file's now, tied ones included.
        missing: names that only the model has: they kept their values.
        unexpected: names that only the file has.
        mismatched: names that both have and that do not fit: they kept their values.
    """

    path: Path
    loaded: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    mismatched: list[Mismatch] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether the model has the file's weights, all of them and no others."""
        return not (self.missing or self.unexpected or self.mismatched)

    def __str__(self) -> str:
        return "\n".join([f"{self.path}: {self.summary()}", *self.lines()])

    def summary(self) -> str:
        """Return the counts, e.g. "3 loaded, 1 missing, 0 unexpected, 2 mismatched"."""
        names = ("loaded", "missing", "unexpected", "mismatched")
        return ", ".join(f"{len(getattr(self, name))} {name}" for name in names)

    def lines(self) -> list[str]:
        """Return the table's lines: all that was not loaded."""
        kinds: dict[str, list[Mismatch]] = {
            "missing": [Mismatch(name, "-", "yes") for name in self.missing],
            "unexpected": [Mismatch(name, "yes", "-") for name in self.unexpected],
            "mismatched": self.mismatched,
        }
        rows = [["", "name", "in the file", "in the model"]]
        for kind, entries in kinds.items():
            rows += [[kind, *map(str, entry)] for entry in entries]
        if len(rows) == 1:
            return []
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return [
            "  ".join(cell.ljust(n) for cell, n in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]


def load_weights(
    model: nn.Module,
    path: str | Path,
    *,
    strict: bool = True,
    dtype: torch.dtype | None = None,
    map_location: str | torch.device = "cpu",
) -> LoadReport:
    """Load the weights of a safetensors file into `model`, in place.

    Every name, shape and dtype of the file is compared with the model's before the first value
    changes. A name that is not in the file is not missing when the model ties it to one that is
    there, or when the file says which one it was tied to. Nothing in the file is executed, and a
    pickle (`torch.save`) is not opened.

    Args:
        model: the module; its own dtypes do not change.
        path: the file.
        strict: True: anything that does not fit is an error, and the model stays as it was. False
            loads what fits and leaves the rest to the report; a file of which nothing fits is an
            error there too.
        dtype: floating-point weights are converted to it on reading. None widens them to the
            model's dtype (bfloat16 to float32), and never narrows.
        map_location: the device on which they are converted and compared; from there they go to the
            model's.

    Returns:
        What was loaded and what not.

    Raises:
        RunError: the file is missing, damaged, not a safetensors file, or does not fit.
        ConfigError: `dtype` is not a floating-point dtype, or `model` not a module.
        DeviceError: the device is not there.
    """
    model = _options.model(model, "load_weights(model, path)")
    _options.flag("strict", strict)
    _options.floating_dtype(dtype)
    path, device = _options.path("path", path), devices.pick(map_location)
    weights = {
        name: tensor.to(device, dtype if tensor.is_floating_point() else None)
        for name, tensor in read_weights(path).items()
    }
    live = model.state_dict()
    report = _compared(live, weights, path)
    if strict and not report.is_complete:
        raise RunError(_refusal(report, model, weights))
    if not report.loaded and (weights or report.missing):
        raise RunError(
            f"nothing in {path} fits the model, so nothing was loaded: "
            "load the weights of a model like this one"
        )
    found = {
        name: like_live(weights[name], live[name]) for name in report.loaded if name in weights
    }
    model.load_state_dict(found, strict=False)
    return report


def read_weights(path: Path) -> dict[str, Tensor]:
    """Every tensor of the file on the CPU, verified, under all names it was saved under.

    Raises `RunError` where it is missing, damaged or no safetensors file."""
    from safetensors import safe_open

    _check_kind(path)
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            metadata = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except Exception as error:  # damaged bytes make the reader raise anything
        raise RunError(
            f"{path} is damaged or not a safetensors file ({first_line(error)}): use a different "
            "one"
        ) from None
    expected = metadata.pop(DIGEST, None)
    metadata.pop(FORMAT, None)
    if expected is not None and expected != _digest(tensors, metadata):
        raise RunError(f"{path} is damaged (its SHA-256 does not match): use a different copy")
    twins = {name: twin for name, twin in metadata.items() if twin in tensors}
    return {**{name: tensors[twin] for name, twin in twins.items()}, **tensors}


def _digest(tensors: Mapping[str, Tensor], ties: Mapping[str, str]) -> str:
    digest = Digest()
    for name, tensor in sorted(tensors.items()):
        digest.add(name, tensor)
    return digest.end(ties)


def _check_kind(path: Path) -> None:
    """Say what the file is where it cannot be safetensors."""
    try:
        with open_regular(path) as file:
            start = file.read(4)
    except FileNotFoundError:
        raise RunError(f"no weights at {path}: name a file that save_weights wrote") from None
    except OSError as error:
        if path.is_dir():
            raise RunError(f"{path} is a folder: name a safetensors file in it") from None
        raise RunError(cannot_read(path, error)) from None
    # A zip archive is what torch.save writes today, a bare pickle what it wrote once. The eight
    # bytes that a safetensors file begins with are a length below 100 MB: never these.
    if start == b"PK\x03\x04" or start[:2] in (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"):
        raise RunError(
            f"{path} looks like a pickle (torch.save), which is not opened: convert it with "
            "save_weights(torch.load(path, weights_only=True), 'model.safetensors')"
        )


def _compared(state: Mapping[str, Any], weights: Mapping[str, Tensor], path: Path) -> LoadReport:
    """The entries of `weights` that go into a model with this state dict, name by name."""
    report = LoadReport(path, unexpected=[name for name in weights if name not in state])
    for names in tied(state):
        good: list[str] = []
        bad: list[Mismatch] = []
        for name in (name for name in names if name in weights):
            wrong = _misfit(name, weights[name], state[name])
            # Into one place goes one value: of several names the first decides.
            if wrong is None and good and not _is_same(weights[name], weights[good[0]]):
                wrong = Mismatch(name, "other values", f"tied to {good[0]}")
            if wrong is None:
                good.append(name)
            else:
                bad.append(wrong)
        report.mismatched.extend(bad)
        others = [name for name in names if name not in weights]
        if good:
            report.loaded.extend(good + others)
        else:
            report.missing.extend(others)
    return report


def _is_same(one: Tensor, other: Tensor) -> bool:
    """Bit for bit, NaN included."""
    return one.dtype == other.dtype and torch.equal(raw(one), raw(other))


def _misfit(name: str, found: Tensor, there: Any) -> Mismatch | None:
    if not isinstance(there, Tensor):
        return Mismatch(name, tuple(found.shape), type(there).__name__)
    if is_lazy(there):
        return None
    if found.shape != there.shape:
        return Mismatch(name, tuple(found.shape), tuple(there.shape))
    if not _widens(found.dtype, there.dtype):
        return Mismatch(name, found.dtype, there.dtype)
    return None


def _widens(source: torch.dtype, target: torch.dtype) -> bool:
    """Whether every value of one dtype is one of the other."""
    if source == target:
        return True
    floats = source.is_floating_point and target.is_floating_point
    signed = source.is_signed and not target.is_floating_point and not target.is_complex
    return (floats or signed) and torch.promote_types(source, target) == target


def _refusal(report: LoadReport, model: nn.Module, weights: Iterable[str]) -> str:
    """The error of a strict load: one line with the first names of each kind, and the remedy."""
    state, names = model.state_dict(), list(weights)
    remedy = "load it into a model like the one it was saved from"
    if prefix := _prefix(names, state):
        remedy = f"its names begin with {prefix!r}: save from inside that wrapper"
    elif prefix := _prefix(state, names):
        remedy = f"the model's names begin with {prefix!r}: load into the module inside"
    if any(isinstance(wrong.in_file, torch.dtype) for wrong in report.mismatched):
        remedy += ", convert on reading with dtype=..."
    wrong = [
        f"{one.name} ({one.in_file} in the file, {one.in_model} in the model)"
        for one in report.mismatched[:_LISTED]
    ]
    return (
        f"{report.path} does not fit the model, {_listed(report.missing, 'missing')}, "
        f"{_listed(report.unexpected, 'unexpected')}, "
        f"{_listed(wrong, 'mismatched', len(report.mismatched))}: {remedy}, "
        "or write strict=False to load what fits, and print the report for all names"
    )


def _listed(names: list[str], kind: str, count: int | None = None) -> str:
    """E.g. "3 missing such as a.weight and b.weight"."""
    shown = " and ".join(names[:_LISTED])
    return f"{len(names) if count is None else count} {kind}" + (f" such as {shown}" * bool(names))


def _prefix(longer: Iterable[str], shorter: Iterable[str]) -> str:
    """The prefix of the longer names before the shorter; empty if they differ more."""
    wanted, known = set(longer), set(shorter)
    any_name = min(wanted, default="")
    ends = (any_name[: -len(name)] for name in known if any_name.endswith(f".{name}"))
    return next((p for p in ends if {p + name for name in known} == wanted), "")
