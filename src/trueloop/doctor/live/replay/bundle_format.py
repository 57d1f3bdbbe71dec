"""The contents of a bundle's files, read and checked: a file from somebody else may be damaged, or
made to do harm.

Everything is looked at before anything is run: kinds and ranges of all values, sizes and strides of
all tensors, each operation's name and arguments, and that an operation uses only what was made
before it.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import torch

from trueloop import files
from trueloop.doctor.live.nonfinite.operation_trace import LIMIT
from trueloop.doctor.live.replay import allowed_ops
from trueloop.doctor.live.replay.allowed_ops import BoundCall, shown
from trueloop.errors import ConfigError

VERSION = 1
TAPE, TENSORS, GENERATORS = "tape.json", "tensors.safetensors", "rng.json"
MOST_TAPE = 64 * 10**6
"""Bytes of `tape.json`: some 200,000 operations."""
_MOST_GENERATORS = 10**6
_MOST_HEADER = 100 * 10**6
"""Bytes before the tensors in a file of safetensors, which has this limit itself."""
_LONGEST_STRIDE = 2**40
"""Of a dimension with one element, whose stride means nothing but is computed with."""
_BAD = ("", "NaN", "inf", "-inf")
_SOURCES = ("parameter", "buffer", "input", "constant")


@dataclass(kw_only=True)
class SavedValue:
    """The values that operations begin with, or make."""

    source: tuple[str, str] | None
    """Its kind, and its name."""
    stride: tuple[int, ...] | None
    """Of a tensor in the bundle; None for one that an operation makes."""


@dataclass(kw_only=True)
class SavedOperation:
    name: str
    call: BoundCall
    outputs: list[int]
    """The values that it makes."""
    bad: str
    """`NaN`, `inf`, `-inf`, or empty, as it was when the bundle was written."""
    module: str
    kind: str
    """The module's class."""
    node: str
    """In a backward: what autograd computed."""
    line: tuple[str, int] | None
    last: list[int] = field(default_factory=list)
    """Values that no later operation uses."""


@dataclass(kw_only=True)
class Bundle:
    torch: str
    update: int
    place: tuple[str, int]
    what: str
    """`loss` or `gradient`."""
    kind: str
    """`NaN`, `inf`, `-inf`, or empty."""
    rows: list[int]
    samples: list[Any]
    values: list[SavedValue]
    operations: list[SavedOperation]
    tensors: dict[int, Any]
    generator: Any
    """The state of the CPU's generator."""


class _BadContentError(Exception):
    """A value that a bundle does not have; the text says which."""


def read(path: str) -> Bundle:
    """A bundle's content, checked. Raises `ConfigError` for what is not a bundle, and for one that
    cannot be run here."""
    try:
        return _read(path)
    except _BadContentError as error:
        raise ConfigError(
            f"{shown(path)} is not a bundle that can be replayed ({error}): watch the program again"
        ) from None


def _read(path: str) -> Bundle:
    _must_be_there(path)
    content = _object(_json(os.path.join(path, TAPE), MOST_TAPE), TAPE)
    if type(content.get("version")) is not int or content["version"] != VERSION:
        raise ConfigError(
            f"{shown(path)} was written by a different version of trueloop: watch the program again"
        )
    values = [_value(each) for each in _list(content.get("values"), "values")]
    version = _text(content.get("torch"), "torch")
    operations = [
        _operation(each, version) for each in _list(content.get("operations"), "operations")
    ]
    _follow(values, operations)
    found = _object(content.get("found"), "found")
    return Bundle(
        torch=version,
        update=_whole(content.get("update"), "update"),
        place=_place(_list(content.get("place"), "place")[:2], "place"),
        what=_text(found.get("what"), "what"),
        kind=_one_of(found.get("kind"), _BAD, "kind"),
        rows=[_whole(each, "rows") for each in _list(found.get("rows") or [], "rows")],
        samples=[_sample(each) for each in _list(found.get("samples") or [], "samples")],
        values=values,
        operations=operations,
        tensors=_tensors(os.path.join(path, TENSORS), values),
        generator=_generator(_json(os.path.join(path, GENERATORS), _MOST_GENERATORS)),
    )


def _must_be_there(path: str) -> None:
    for name in (TAPE, TENSORS, GENERATORS):
        try:
            os.stat(os.path.join(path, name))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ConfigError(
                f"{shown(path)} is not a bundle ({name}: {reason.lower()}): write the name of a "
                "folder that trueloop watch wrote"
            ) from None


def _json(path: str, most: int) -> Any:
    """Raises `ConfigError` for a file that cannot be read, `_BadContentError` for one that is not
    JSON."""
    name = os.path.basename(path)
    try:
        return json.loads(files.read_text(path, most))
    except OSError as error:
        raise ConfigError(files.cannot_read(shown(path), error)) from None
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise _BadContentError(f"{name} is not JSON: {shown(reason)}") from None


# ---------------------------------------------------------------------- kinds of values


def _wrong(what: str, wanted: str) -> NoReturn:
    raise _BadContentError(f"{what} is not {wanted}")


def _object(given: Any, what: str) -> dict[str, Any]:
    return given if isinstance(given, dict) else _wrong(what, "an object")


def _list(given: Any, what: str) -> list[Any]:
    return given if isinstance(given, list) else _wrong(what, "a list")


def _text(given: Any, what: str) -> str:
    return given if isinstance(given, str) else _wrong(what, "text")


def _whole(given: Any, what: str) -> int:
    """A whole number from 0 to the largest of 64 bits."""
    if type(given) is not int or not 0 <= given < 2**63:
        _wrong(what, "a whole number from 0 on")
    return given


def _one_of(given: Any, wanted: Sequence[str], what: str) -> str:
    return given if isinstance(given, str) and given in wanted else _wrong(
        what, "one of " + ", ".join(map(repr, wanted))
    )  # fmt: skip


def _place(given: list[Any], what: str) -> tuple[str, int]:
    if len(given) != 2:
        _wrong(what, "a file and a line")
    return _text(given[0], what), _whole(given[1], what)


def _sample(given: Any, depth: int = 2) -> Any:
    """An index in a data set: a number, a key, or a few of them."""
    if isinstance(given, list) and depth:
        return [_sample(each, depth - 1) for each in given]
    if given is None or isinstance(given, (bool, int, float, str)):
        return given
    return _wrong("samples", "a list of indices")


def _value(given: Any) -> SavedValue:
    held = _object(given, "a value")
    source, stride = held.get("source"), held.get("stride")
    if source is not None:
        pair = _list(source, "a value's source")
        if len(pair) != 2:
            _wrong("a value's source", "a kind and a name")
        source = (_one_of(pair[0], _SOURCES, "a value's source"), _text(pair[1], "a name"))
    if stride is not None:
        stride = tuple(_whole(each, "a stride") for each in _list(stride, "a stride"))
    return SavedValue(source=source, stride=stride)


def _operation(given: Any, version: str) -> SavedOperation:
    held = _object(given, "an operation")
    name = _text(held.get("name"), "an operation's name")
    operation = allowed_ops.find(name, version)
    args = _list(held.get("args"), "an operation's args")
    kwargs = _object(held.get("kwargs"), "an operation's kwargs")
    line = held.get("line")
    try:
        call = allowed_ops.bind(operation, name.split(".")[1], args, kwargs)
    except allowed_ops.BadArgumentError as error:
        raise _BadContentError(f"{name}: {error}") from None
    return SavedOperation(
        name=name,
        call=call,
        outputs=[_whole(each, "outputs") for each in _list(held.get("outputs"), "outputs")],
        bad=_one_of(held.get("bad"), _BAD, "bad"),
        module=_text(held.get("module"), "module"),
        kind=_text(held.get("kind"), "kind"),
        node=_text(held.get("node"), "node"),
        line=None if line is None else _place(_list(line, "line"), "line"),
    )


def _follow(values: list[SavedValue], operations: list[SavedOperation]) -> None:
    """Each value is there before it is used, and made once; and note where it is used last."""
    made = {index for index, value in enumerate(values) if value.stride is not None}
    used: dict[int, SavedOperation] = {}
    for operation in operations:
        for index in operation.call.refs():
            if index not in made:
                _wrong(f"{operation.name}: value {index}", "there before it is used")
            used[index] = operation
        for index in operation.outputs:
            if index in made or index >= len(values):
                _wrong(f"{operation.name}: value {index}", "one that it can make")
            made.add(index)
            used[index] = operation
    for index, operation in used.items():
        operation.last.append(index)


# ---------------------------------------------------------------------- tensors


def _tensors(path: str, values: list[SavedValue]) -> dict[int, Any]:
    """The tensors that the operations begin with, with the strides that they had."""
    from safetensors import SafetensorError, safe_open

    try:
        with files.open_regular(path) as file:
            if os.fstat(file.fileno()).st_size > LIMIT + _MOST_HEADER:
                raise files.TooLargeError(path, LIMIT + _MOST_HEADER)
        with safe_open(path, "pt") as held:
            wanted = {str(index): value for index, value in enumerate(values)
                      if value.stride is not None}  # fmt: skip
            if set(held.keys()) != set(wanted):
                _wrong(TENSORS, "what tape.json speaks of")
            return {
                int(name): _as_it_was(held.get_tensor(name), value.stride or (), name)
                for name, value in wanted.items()
            }
    except OSError as error:
        raise ConfigError(files.cannot_read(shown(path), error)) from None
    except SafetensorError as error:
        raise _BadContentError(f"{TENSORS}: {shown(error)}") from None


def _as_it_was(tensor: torch.Tensor, stride: tuple[int, ...], name: str) -> Any:
    what = f"the stride of tensor {name}"
    if len(stride) == tensor.dim() - 1 and tensor.dtype in (torch.float32, torch.float64):
        if tensor.shape[-1] != 2:
            _wrong(what, "one that its shape may have")
        tensor = torch.view_as_complex(tensor)
    if tensor.dtype not in allowed_ops.DTYPES.values():
        _wrong(f"the dtype of tensor {name}", "one that a bundle may contain")
    if not _is_dense(tuple(tensor.shape), stride):
        _wrong(what, "one that its shape may have")
    if tensor.dtype == torch.bool:
        tensor = tensor.view(torch.uint8) != 0  # a byte of 2 is neither true nor false
    return torch.empty_strided(tensor.shape, stride, dtype=tensor.dtype).copy_(tensor)


def _is_dense(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """Without gaps, and with a separate place for each element: as copies of tensors are."""
    if len(shape) != len(stride) or any(step > _LONGEST_STRIDE for step in stride):
        return False
    if 0 in shape:
        return True
    expected = 1
    for step, size in sorted(
        (step, size) for step, size in zip(stride, shape, strict=True) if size > 1
    ):
        if step != expected:
            return False
        expected *= size
    return True


def _generator(given: Any) -> Any:
    """The state of the CPU's generator, of the length that torch has."""
    written = _text(_object(given, GENERATORS).get("cpu"), f"cpu in {GENERATORS}")
    try:
        state = base64.b64decode(written, validate=True)
    except (binascii.Error, ValueError):
        _wrong(f"cpu in {GENERATORS}", "base64")
    made = torch.frombuffer(bytearray(state or b"\0"), dtype=torch.uint8)
    try:
        torch.Generator().set_state(made)
    except RuntimeError:
        _wrong(f"cpu in {GENERATORS}", "the state of a generator of torch")
    return made
