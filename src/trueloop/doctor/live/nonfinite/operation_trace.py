"""The tape: every operation of a call that is made again, below autograd, with the first values
that were no finite numbers.

A bundle contains this: operations of `aten` by name with their arguments, which can be run again
without the program's source.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from trueloop.doctor.live.frames import user_frames
from trueloop.doctor.model.findings import Location

if TYPE_CHECKING:
    from trueloop.doctor.live.hub import Args, Kwargs

LIMIT = 2 * 2**30
"""The most bytes of values that are kept: beyond it the trace is incomplete."""


class Source(NamedTuple):
    """Where a value comes from that no operation on the tape has made."""

    kind: str
    """`parameter`, `buffer`, `input` or `constant`."""
    name: str


@dataclass
class TracedValue:
    source: Source | None
    bad: str
    """`NaN`, `inf`, `-inf`, or empty: all of it is finite."""
    rows: tuple[int, ...] = ()
    """The rows (of the first dimension) that are not finite, if it is some of them only."""
    data: Any = None
    """A copy of what no operation has made."""
    now: Any = None
    """The tensor itself: its place in memory identifies it as long as it lives."""
    size: tuple[int, ...] = ()


@dataclass
class Operation:
    name: str
    """`aten.log.default`."""
    args: list[Any]
    kwargs: Kwargs
    inputs: list[int]
    outputs: list[int]
    bad: str
    module: str
    """The module that computes it, by its path from the model: `net.2`; empty for the model."""
    kind: str
    """The module's class."""
    place: Location | None
    """The program's own line; None if there are only libraries' lines."""
    node: str = ""
    """In a backward: what autograd carries out, `SqrtBackward0`."""
    forward: Location | None = None
    """In a backward: the line whose gradient it computes."""
    inputs_bad: list[str] = field(default_factory=list)


def kind_of_bad(tensor: torch.Tensor) -> str:
    """`NaN`, `inf`, `-inf`, or empty."""
    if not isinstance(tensor, torch.Tensor) or not tensor.numel():
        return ""
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.layout != torch.strided:
        return ""
    if tensor._is_zerotensor():  # autograd's zeros without memory: isfinite() of one crashes
        return ""
    if bool(tensor.isfinite().all()):
        return ""
    if bool(tensor.isnan().any()):
        return "NaN"
    return "inf" if tensor.is_complex() or bool((tensor > 0).logical_and(tensor.isinf()).any()) \
        else "-inf"  # fmt: skip


def bad_rows(tensor: torch.Tensor) -> tuple[int, ...]:
    if tensor.dim() == 0 or tensor.shape[0] < 2 or tensor.is_complex():
        return ()
    rows = (~tensor.isfinite()).reshape(tensor.shape[0], -1).any(1)
    found = rows.nonzero().reshape(-1).tolist()
    return tuple(found) if len(found) < tensor.shape[0] else ()


class OperationTrace(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Writes down what is computed while it is entered. Nothing of it changes the result."""

    def __init__(self, stop: CodeType) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: list[Operation] = []
        self.values: list[TracedValue] = []
        self.inside: list[tuple[str, str]] = []
        """Path and class of the modules whose calls are open."""
        self.whole = True
        """All of it can be carried out again."""
        self._stop = stop
        self._names: dict[int, tuple[Any, Source]] = {}
        self._known: dict[tuple[Any, ...], int] = {}
        self._bytes = 0
        self._last_bad: dict[int, int] = {}
        """Storage -> the value that was the last to be not finite in it."""

    def name(self, tensor: torch.Tensor, kind: str, name: str) -> None:
        """Say what a tensor is that operations will meet."""
        if id(tensor) not in self._names:
            self._names[id(tensor)] = (tensor, Source(kind, name))

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Args = (), kwargs: Kwargs | None = None
    ) -> Any:
        kwargs = kwargs or {}
        inputs: list[int] = []
        fresh = "lift_fresh" in str(func)
        written = self._encode(list(args), inputs, fresh)
        named = self._encode(kwargs, inputs, fresh)
        before = [self.values[each].bad for each in inputs]
        output = func(*args, **kwargs)
        outputs, bad = [], ""
        for each in _tensors(output):
            index = self._made(each)
            outputs.append(index)
            bad = bad or self.values[index].bad
        if not outputs:
            for index, given in zip(inputs, _tensors((args, kwargs)), strict=False):
                self.values[index].bad = kind_of_bad(given)  # changed in place
                bad = bad or self.values[index].bad
        module, kind = self.inside[-1] if self.inside else ("", "")
        operation = Operation(
            str(func), written, named, inputs, outputs, bad, module, kind, self._line(),
            inputs_bad=before,
        )  # fmt: skip
        self._note_backward(operation)
        self.operations.append(operation)
        return output

    def _note_backward(self, operation: Operation) -> None:
        node: Any = torch._C._current_autograd_node()
        if node is None:
            return
        operation.node = node.name()
        for text in reversed(node.metadata.get("traceback_") or []):
            place = _place_in(text)
            if place is not None and user_frames.kind_of(place.path) == "user":
                operation.forward = place
                return

    # ------------------------------------------------------------------ values

    def _key(self, tensor: torch.Tensor) -> tuple[Any, ...]:
        if tensor.layout != torch.strided:
            return (id(tensor),)
        storage = tensor.untyped_storage()
        return (
            storage._cdata, tensor.storage_offset(), tuple(tensor.shape), tensor.stride(),
            tensor.dtype, tensor.is_conj(), tensor.is_neg(),
        )  # fmt: skip

    def _made(self, tensor: torch.Tensor) -> int:
        bad = kind_of_bad(tensor)
        rows = bad_rows(tensor) if bad else ()
        self.values.append(TracedValue(None, bad, rows, now=tensor, size=tuple(tensor.shape)))
        index = len(self.values) - 1
        self._known[self._key(tensor)] = index
        if bad and tensor.layout == torch.strided:
            self._last_bad[tensor.untyped_storage()._cdata] = index
        return index

    def _alias(self, tensor: torch.Tensor, index: int) -> int:
        """A value that was changed through a different view of its memory."""
        if self.values[index].bad or tensor.layout != torch.strided:
            return index
        other = self._last_bad.get(tensor.untyped_storage()._cdata)
        return other if other is not None and kind_of_bad(tensor) else index

    def _met(self, tensor: torch.Tensor, fresh: bool) -> tuple[int, int]:
        """Its value, and the value that says where it is from."""
        key = self._key(tensor)
        if not fresh and key in self._known:
            return self._known[key], self._alias(tensor, self._known[key])
        _, source = self._names.get(id(tensor), (None, Source("constant", "")))
        bad = kind_of_bad(tensor)
        rows = bad_rows(tensor) if bad else ()
        value = TracedValue(source, bad, rows, now=tensor, size=tuple(tensor.shape))
        self._bytes += tensor.numel() * tensor.element_size()
        if self._bytes > LIMIT or tensor.layout != torch.strided:
            self.whole = False
        else:
            value.data = tensor.detach().clone()
        self.values.append(value)
        self._known[key] = len(self.values) - 1
        index = len(self.values) - 1
        return index, index

    def _encode(self, given: Any, inputs: list[int], fresh: bool) -> Any:
        """An argument as JSON has it."""
        if isinstance(given, torch.Tensor):
            index, cause = self._met(given, fresh)
            inputs.append(cause)
            return {"tensor": index}
        if isinstance(given, (list, tuple)):
            return [self._encode(each, inputs, fresh) for each in given]
        if isinstance(given, dict):
            return {key: self._encode(each, inputs, fresh) for key, each in given.items()}
        if given is None or isinstance(given, (bool, int, str)):
            return given
        if isinstance(given, float):
            return given if given - given == 0 else {"float": str(given)}
        for name, kind in (
            ("dtype", torch.dtype), ("layout", torch.layout), ("memory_format", torch.memory_format)
        ):  # fmt: skip
            if isinstance(given, kind):
                return {name: str(given).removeprefix("torch.")}
        if isinstance(given, torch.device):
            return {"device": str(given)}
        self.whole = False
        return {"unknown": type(given).__name__}

    def index_of(self, tensor: torch.Tensor) -> int:
        """The value that a tensor is."""
        return self._met(tensor, fresh=False)[1]

    def kept(self, index: int) -> Any:
        """A value as it is now, or as it was when it came from outside."""
        value = self.values[index]
        return value.data if value.data is not None else value.now

    # ------------------------------------------------------------------ places

    def _line(self) -> Location | None:
        """The program's innermost line below the call that is made again."""
        frame: Any = sys._getframe(2)
        while frame is not None and frame.f_code is not self._stop:
            if user_frames.kind_of(frame.f_code.co_filename) == "user":
                return user_frames.place_at(frame.f_code, frame.f_lasti, frame.f_lineno)
            frame = frame.f_back
        return None

    # ------------------------------------------------------------------ where it began

    def origin(self, ends: list[int], kind: str) -> Operation | TracedValue | None:
        """Where the values that are not finite began: an operation on finite numbers, or a value
        that came from outside."""
        makers = {index: op for op in self.operations for index in op.outputs}
        bad = [index for index in ends if self.values[index].bad]
        ranked = [index for index in bad if self.values[index].bad == kind] or bad
        if not ranked:
            return None
        index = ranked[0]
        for _ in range(len(self.operations) + 1):
            maker = makers.get(index)
            if maker is None:
                return self.values[index]
            if maker.inputs == [index]:
                return maker
            causes = [each for each in maker.inputs if self.values[each].bad]
            wanted = self.values[index].bad
            same = [each for each in causes if self.values[each].bad == wanted]
            if wanted == "NaN" and not same:
                causes = [each for each in causes if not self._is_mask(each, makers)]
                if not causes:
                    return maker
            causes = same or causes
            if not causes or causes[0] == index:
                return maker
            index = causes[0]
        return None

    def _is_mask(self, index: int, makers: dict[int, Operation]) -> bool:
        """Its infinities were put there on purpose."""
        for _ in range(len(makers) + 1):
            maker = makers.get(index)
            if maker is None:
                source = self.values[index].source
                return source is not None and source.kind in ("constant", "input")
            if any(word in maker.name for word in _MASKS):
                return True
            causes = [each for each in maker.inputs if self.values[each].bad and each != index]
            if not causes:
                return False
            index = causes[0]
        return False


_MASKS = ("masked_fill", "where", "full", "fill_", "fill.", "scalar_tensor", "index_put")


def _tensors(value: object) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _tensors(each)


def _place_in(text: str) -> Location | None:
    """Of one entry of a traceback: `File "x.py", line 3, in f`."""
    words = text.split('"')
    if len(words) < 3:
        return None
    number = words[2].removeprefix(", line ").split(",")[0].strip()
    return Location(words[1], int(number)) if number.isdecimal() else None
