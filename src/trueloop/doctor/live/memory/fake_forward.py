"""How much the calls of an update keep for its backward, found out by making them on tensors that
have shapes and no data: it takes no memory, and computes nothing."""

from __future__ import annotations

import copy
import itertools
import re
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn

from trueloop.doctor.live.memory import footprint
from trueloop.doctor.live.nonfinite import recent_calls as calls
from trueloop.doctor.live.nonfinite.rerun import (
    alone,
    drop_hooks,
    untouched,
)
from trueloop.doctor.live.objects import autograd_graph, hook_numbers, inspection

if TYPE_CHECKING:
    from trueloop.doctor.live.hub import Args, Kwargs
    from trueloop.doctor.live.nonfinite.recent_calls import Call, RecentCalls

_NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")
_PLAIN = (bool, int, float, str, type(None), torch.dtype, torch.device)
LOSS = "the loss"


class Shape(NamedTuple):
    """A tensor without its data."""

    size: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool
    identity: tuple[int, int]
    """Of its storage, and the storage's bytes."""


class RecordedCall(NamedTuple):
    """One call: a model (weakly), or a function if there is none."""

    module: Any
    function: Any
    args: Any
    kwargs: Any
    autocast: tuple[str, Any] | None


@dataclass
class CallSpec:
    """The calls of one update."""

    calls: list[RecordedCall]
    whole: bool = False

    @property
    def module(self) -> Any:
        """The model that is called first."""
        return next((each.module() for each in self.calls if each.module is not None), None)

    @property
    def has_loss(self) -> bool:
        return any(each.module is None for each in self.calls)

    def borrow_loss(self, other: CallSpec) -> None:
        """An update that has died before its loss has the loss of an earlier one."""
        self.calls += [each for each in other.calls if each.module is None]

    @property
    def samples(self) -> int | None:
        """The length of the first dimension of what the model is given."""
        first = next((each for each in self.calls if each.module is not None), None)
        found = None if first is None else next(_shapes((first.args, first.kwargs)), None)
        return found.size[0] if found is not None and found.size else None

    @property
    def batch_bytes(self) -> int:
        """Of what goes into the models and the loss and was computed by neither."""
        given = [
            each for call in self.calls for each in _shapes((call.args, call.kwargs))
            if not each.requires_grad
        ]  # fmt: skip
        return sum(dict(each.identity for each in given).values())


@dataclass
class SavedBytes:
    """Bytes that are kept for the backward, each storage once, in the order of the calls."""

    parts: list[tuple[str, int]] = field(default_factory=list)
    """Name of the module that saves, and what."""
    entered: list[tuple[int, int]] = field(default_factory=list)
    """`id` of a module that is entered, and the bytes that are saved by then."""
    segments: list[Segments] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(size for _, size in self.parts)

    @property
    def most(self) -> int:
        """The largest single tensor."""
        return max((size for _, size in self.parts), default=0)

    def until(self, path: tuple[int, ...]) -> int:
        """The storages that were saved when the innermost known module of a path was last
        entered."""
        for identity in reversed(path):
            known = [size for entered, size in self.entered if entered == identity]
            if known:
                return known[-1]
        return 0

    def largest(self, count: int) -> list[tuple[str, int, int]]:
        """The modules that save most, those of repeated blocks together: (name, bytes, how
        many)."""
        sizes: Counter[str] = Counter()
        names: dict[str, set[str]] = {}
        for name, size in self.parts:
            kind = _NUMBER.sub("*", name) if name.count(".") else name
            sizes[kind] += size
            names.setdefault(kind, set()).add(name)
        found = []
        for kind, size in sizes.most_common(count):
            one = len(names[kind]) == 1
            found.append((next(iter(names[kind])) if one else kind, size, len(names[kind])))
        return found


class Segments(NamedTuple):
    """Modules in a row that could be computed again in the backward, each from its inputs."""

    name: str
    saved: tuple[int, ...]
    """By each, but for its inputs."""
    inputs: tuple[int, ...]
    """Of each, as far as they are not saved as it is."""


def note_call(call: Call) -> RecordedCall:
    """A call that is kept for later; the exception that brought it here ends the program."""
    args, kwargs = (_map(_light, each) for each in (tuple(call.args), dict(call.kwargs)))
    return _noted(call.function, args, kwargs, call.autocast)


def note(function: Any, args: Any, kwargs: Any) -> RecordedCall | None:
    """A call of a running program; None where something would have to be kept alive for it."""
    if not _is_plain((args, kwargs)):
        return None
    return _noted(function, args, kwargs, calls.autocast_state())


def _noted(function: Any, args: Args, kwargs: Kwargs, autocast: Any) -> RecordedCall:
    is_module = isinstance(function, nn.Module)
    return RecordedCall(
        weakref.ref(function) if is_module else None,
        None if is_module else function,
        _map(_shaped, args),
        _map(_shaped, kwargs),
        autocast,
    )


def saved_by(
    calls: RecentCalls, recipe: CallSpec, samples: int | None = None, *, half: bool = False
) -> SavedBytes | str:
    """Make the calls of an update without data; or why that cannot be done.

    Args:
        samples: with so many samples instead.
        half: under autocast to bfloat16.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    now = recipe.samples
    scale = (lambda size: size) if samples is None or not now else _scaled(now, samples)
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    try:
        with untouched(calls), torch.enable_grad(), mode:
            return _Count(mode, recipe).run(scale, half)
    except Exception as error:  # whatever the program's code makes of tensors without data
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0][:120]}"


def _scaled(now: int, then: int) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
    def scale(size: tuple[int, ...]) -> tuple[int, ...]:
        if size and size[0] % now == 0:
            return (size[0] // now * then, *size[1:])
        return size

    return scale


class _Count:
    """One pass through the calls of an update."""

    def __init__(self, mode: Any, recipe: CallSpec) -> None:
        self.mode = mode
        self.recipe = recipe
        self.saved = SavedBytes()
        self.known: dict[Any, Any] = {}
        """Storages that are counted, or are not activations; held, so that no new storage gets
        their address."""
        self.inside: list[nn.Module] = []
        self.memo: dict[int, Any] = {}
        """`id` of a tensor of the program's -> its likeness."""
        self.root: nn.Module | None = None
        self.originals: dict[int, int] = {}
        self.names: dict[int, str] = {}
        self.given: dict[int, dict[int, Any]] = {}
        """`id` of a module -> the storages that it was called with."""
        self.own: Counter[int] = Counter()
        """`id` of a module -> what was saved inside of it, but for those."""

    def run(self, scale: Any, half: bool) -> SavedBytes:
        for call in self.recipe.calls:
            module = None if call.module is None else call.module()
            if call.module is not None and module is None:
                continue
            if module is not None:
                module = self._copy(module)
            args, kwargs = (
                _map(lambda each: self._given(each, scale), part)
                for part in (call.args, call.kwargs)
            )
            self._make(module, call, args, kwargs, half)
        self._find_segments()
        return self.saved

    def _copy(self, root: nn.Module) -> nn.Module:
        """A module with its state, in tensors without data; nothing of the program's is changed."""
        root = alone(root, self._imitate)
        for tensor in (*inspection.weights(root), *root.buffers()):
            self._imitate(tensor)
        made = copy.deepcopy(root, self.memo)
        self.root = self.root or made
        pairs = zip(root.named_modules(), made.named_modules(), strict=True)
        for (name, original), (_, module) in pairs:
            self.names.setdefault(id(module), name or type(module).__name__)
            self.originals[id(module)] = id(original)
            drop_hooks(module)
        return made

    def _imitate(self, tensor: torch.Tensor) -> None:
        if id(tensor) not in self.memo:
            plain = tensor.detach() if tensor.grad_fn is not None else tensor
            made = self.memo[id(tensor)] = self.mode.from_tensor(plain)
            self._pass(made)

    def _pass(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        self.known[storage._cdata] = storage

    def _given(self, value: object, scale: Any) -> Any:
        if not isinstance(value, Shape):
            return value
        made = torch.empty(scale(value.size), dtype=value.dtype, device=value.device)
        if value.requires_grad and made.dtype.is_floating_point:
            made.requires_grad_()
        else:
            self._pass(made)
        return made

    def _make(
        self, module: nn.Module | None, call: RecordedCall, args: Any, kwargs: Any, half: bool
    ) -> None:
        device, dtype = call.autocast or ("cpu", torch.bfloat16)
        if half and module is not None:
            device = next(inspection.weights(module)).device.type
            dtype = torch.bfloat16
        on = call.autocast is not None or (half and module is not None)
        registration = nn.modules.module
        with hook_numbers.of_the_watcher():
            hooks = (
                registration.register_module_forward_pre_hook(self._enter),
                registration.register_module_forward_hook(self._leave, always_call=True),
            )
        try:
            with (
                torch.autocast(device, dtype, enabled=on),
                torch.autograd.graph.saved_tensors_hooks(self._pack, lambda packed: packed),
            ):
                given = call.function if module is None else module
                # Held, with all that its graph keeps: no new storage gets an old address.
                self.known[id(call)] = given(*args, **kwargs)
        finally:
            for hook in hooks:
                hook.remove()

    def _enter(self, module: nn.Module, args: Any) -> None:
        self.inside.append(module)
        self.saved.entered.append((self.originals.get(id(module), 0), self.saved.total))
        storages = [each.untyped_storage() for each in autograd_graph.tensors_in(args)]
        self.given.setdefault(id(module), {}).update({each._cdata: each for each in storages})

    def _leave(self, module: nn.Module, args: Any, output: object) -> None:
        if self.inside:
            self.inside.pop()

    def _pack(self, tensor: torch.Tensor) -> Any:
        storage = tensor.untyped_storage()
        if storage._cdata not in self.known:
            self.known[storage._cdata] = storage
            size = storage.nbytes()
            named = (
                self.names[id(each)] for each in reversed(self.inside) if id(each) in self.names
            )
            self.saved.parts.append((next(named, LOSS), size))
            for each in set(map(id, self.inside)):
                if storage._cdata not in self.given[each]:
                    self.own[each] += size
        return tensor

    def _find_segments(self) -> None:
        """Rows of modules: the children of `Sequential` and `ModuleList`."""
        for name, module in self.root.named_modules() if self.root is not None else ():
            if isinstance(module, (nn.Sequential, nn.ModuleList)) and len(module) > 1:
                row = [each for each in module if self.own[id(each)]]
                if len(row) > 1:
                    self.saved.segments.append(
                        Segments(
                            name or type(module).__name__,
                            tuple(self.own[id(each)] for each in row),
                            tuple(self._beyond(id(each)) for each in row),
                        )
                    )

    def _beyond(self, module: int) -> int:
        """Bytes that a module was called with and that nothing has saved."""
        given = self.given.get(module, {}).items()
        return sum(storage.nbytes() for key, storage in given if key not in self.known)


def _shaped(value: object) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return Shape(
        tuple(value.shape), value.dtype, value.device, value.requires_grad,
        footprint.storage_of(value),
    )  # fmt: skip


def _light(value: object) -> Any:
    return value.tensor() if isinstance(value, calls.Light) else value


def _shapes(value: object) -> Iterator[Shape]:
    if isinstance(value, Shape):
        yield value
    elif isinstance(value, (list, tuple)):
        yield from itertools.chain.from_iterable(map(_shapes, value))
    elif isinstance(value, dict):
        yield from itertools.chain.from_iterable(map(_shapes, value.values()))


def _map(act: Callable[[Any], Any], value: object) -> Any:
    """The same structure of lists, tuples and tables, with `act` of each leaf."""
    if isinstance(value, Shape) or not isinstance(value, (list, tuple, dict)):
        return act(value)
    if isinstance(value, dict):
        made = {key: _map(act, each) for key, each in value.items()}
        return made if type(value) is dict else _like(value, made)
    parts = [_map(act, each) for each in value]
    if isinstance(value, list):
        return parts
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)


def _like(value: Any, made: dict[Any, Any]) -> Any:
    """A table of a special class (`BatchEncoding`), if it can be made from a plain one."""
    try:
        return type(value)(made)
    except TypeError:
        return made


def _is_plain(value: object) -> bool:
    if inspection.is_tensor(value):
        return True
    if type(value) is list or type(value) is tuple:
        return all(map(_is_plain, value))
    if type(value) is dict:
        return all(map(_is_plain, value.values()))
    return inspection.is_a(value, _PLAIN)
