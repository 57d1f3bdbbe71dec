"""What others build on: the signatures of the public names, and what `help` says of the records."""

from __future__ import annotations

import dataclasses
import inspect
import pydoc
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import trueloop
from trueloop.checkpoint.weights import LoadReport, Mismatch
from trueloop.doctor.model.findings import Finding, Location
from trueloop.group import Ranks
from trueloop.run.directory import RunSummary

FROZEN = Path(__file__).parent / "public_surface.txt"
METHODS = {
    "Checkpoints": ["keep", "resume", "save", "wait"],
    "EarlyStopping": ["__call__", "bring_back", "reset"],
    "Feed": ["epoch", "load_state_dict", "state_dict", "whole_batches"],
    "Run": ["create", "find"],
    "Step": [
        "__call__", "end_epoch", "end_evaluation", "flush", "load_state_dict", "plan",
        "restart_epoch", "state_dict", "stop",
    ],
}  # fmt: skip


def public() -> Iterator[tuple[str, Any]]:
    """Every public class and function by its name, with the methods that users call."""
    for name in trueloop.__all__:
        value = getattr(trueloop, name)
        if inspect.ismodule(value):
            for part in getattr(value, "__all__", ()):
                yield f"{name}.{part}", getattr(value, part)
        else:
            yield name, value
            for method in METHODS.get(name, ()):
                yield f"{name}.{method}", getattr(value, method)


def signature(function: Callable[..., Any]) -> str:
    """Names, kinds and defaults of the arguments, without annotations."""
    found = inspect.signature(function)
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in found.parameters.values()
        if parameter.name != "self"
    ]
    bare = found.replace(parameters=parameters, return_annotation=inspect.Signature.empty)
    return re.sub(r"<function (\w+) at 0x\w+>", r"\1", str(bare))


def test_the_public_signatures_are_these() -> None:
    """A line that is gone or changed breaks programs of others; a new one goes into the file."""
    found = sorted(
        name + signature(value)
        for name, value in public()
        if callable(value)
        and str(getattr(value, "__module__", "")).startswith("trueloop")
        and not (isinstance(value, type) and issubclass(value, Exception))
    )
    frozen = FROZEN.read_text("utf-8").splitlines()
    gone, new = sorted(set(frozen) - set(found)), sorted(set(found) - set(frozen))
    assert found == frozen, f"only in {FROZEN.name}: {gone}; only in the package: {new}"


def fields(kind: type) -> list[str]:
    """The fields of a dataclass or a named tuple that are not private."""
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
    else:
        names = list(getattr(kind, "_fields", ()))
    return [name for name in names if not name.startswith("_")]


# Those that users get as values, beside those that have a public name.
RETURNED = (Finding, LoadReport, Mismatch, Location, Ranks, RunSummary)
RECORDS = {kind for _, kind in public() if isinstance(kind, type) and fields(kind)} | {*RETURNED}


def test_the_records_are_found() -> None:
    names = {kind.__name__ for kind in RECORDS}
    assert {"StepRecord", "EvalRecord", "LossOutput", "History", "EarlyStopping", "Plan"} <= names


@pytest.mark.parametrize("kind", sorted(RECORDS, key=lambda kind: kind.__name__))
def test_help_explains_each_field_of_a_record(kind: type) -> None:
    said = pydoc.render_doc(kind, renderer=pydoc.plaintext)
    missing = [name for name in fields(kind) if not re.search(rf"(?m)^[ |]+{name}: \S+ \S+", said)]
    assert not missing, f"{kind.__name__}: explain {missing} under Attributes: in its docstring"
