"""The possible values of an expression, as far as the source shows.

A value is one of
- a thing of `model.things` (Model, Optimizer, Tensor, ...);
- what `model.known_values` has: a constant, a container, a library's object, an unknown value;
- `Function`, `Method`, `Class`, `Instance`: the user's own code;
- `LibraryName`: a dotted name of code that is not the user's (`torch.nn.Linear`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from trueloop.doctor.model.arithmetic import SIZE
from trueloop.doctor.model.known_values import (
    KEY as KEY,
    NONE as NONE,
    Constant as Constant,
    DictValue as DictValue,
    OpaqueObject as OpaqueObject,
    Sequence as Sequence,
    Unknown as Unknown,
    Value as Value,
    births as births,
    constant as constant,
    loop_of as loop_of,
    short_key as short_key,
)
from trueloop.doctor.model.things import Model, Optimizer, Scheduler, Tensor, Thing
from trueloop.doctor.static.interpreter.attribute_uses import perhaps_layers
from trueloop.doctor.static.interpreter.survey import FileSummary

VISITS = 1_000
"""Parts that one look through a value goes to."""


@dataclass(eq=False, slots=True)
class Module:
    """A file of the user's, parsed."""

    path: str
    """As findings show it."""
    name: str
    """Dotted name by which other files of the project import it; may be empty."""
    tree: ast.Module
    survey: FileSummary
    package: str = ""
    """Dotted name of the package that contains it, for relative imports."""


@dataclass(eq=False, slots=True)
class Scope:
    """Variables of a function's call, of a class body or of a module."""

    module: Module
    parent: Scope | None = None
    """The scope around the definition; None for a module's own."""
    function: Function | None = None
    owner: Class | None = None
    """The class whose method this is, for `super()`."""
    receiver: Any = None
    variables: dict[str, Value] = field(default_factory=dict)
    assigned_at: dict[str, int] = field(default_factory=dict)
    """Name -> how many turns of loops had begun when it was last assigned afresh."""
    outer: dict[str, Scope] = field(default_factory=dict)
    """Names declared `global` or `nonlocal` -> the scope that they belong to."""
    stars: list[str] = field(default_factory=list)
    """Libraries imported with `*`."""
    is_class: bool = False
    returned: list[Value] = field(default_factory=list)
    on_yield: Callable[[Value], Value] | None = None
    """Handles a value that is yielded; returns the value sent back."""
    waiting: dict[str, ast.stmt] = field(default_factory=dict)
    """Names whose definition is evaluated when they are asked for; see `pending`."""
    waits_in_silence: bool = False
    """The rules do not hear of what these definitions do."""
    windows: int = 0
    """The windows around the call."""

    def find(self, name: str) -> Scope | None:
        """The scope that has a name; class bodies are seen only from themselves."""
        scope: Scope | None = self.outer.get(name, self)
        first = True
        while scope is not None:
            if name in scope.variables and (first or not scope.is_class):
                return scope
            if name in scope.waiting:
                return scope
            scope, first = scope.parent, False
        return None

    def top(self) -> Scope:
        """The module's own scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


@dataclass(eq=False, slots=True)
class Function(Value):
    """A function of the user's."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope
    """The scope that it was defined in."""
    module: Module
    name: str
    owner: Class | None = None
    defaults: list[Value] = field(default_factory=list)
    keyword_defaults: dict[str, Value] = field(default_factory=dict)
    decorators: list[Value] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Method(Value):
    """A function of the user's, bound to what it is a method of."""

    receiver: Any
    function: Function


@dataclass(eq=False, slots=True)
class Class(Value):
    """A class of the user's."""

    node: ast.ClassDef
    module: Module
    name: str
    bases: list[Value]
    namespace: dict[str, Value]
    scope: Scope | None = None
    fields: list[str] = field(default_factory=list)
    """The fields of a dataclass, in order."""
    _lineage: tuple[Value, ...] = ()

    def lineage(self) -> tuple[Value, ...]:
        """Itself and its bases, depth first: classes of the user's, and dotted names."""
        if self._lineage:
            return self._lineage
        found: dict[int, Any] = {}
        waiting: list[Value] = [self]
        while waiting and len(found) < 50:
            kind = waiting.pop()
            if id(kind) in found:
                continue
            found[id(kind)] = kind
            if isinstance(kind, Class):
                waiting += kind.bases[49::-1]
        self._lineage = tuple(found.values())
        return self._lineage

    def lookup(self, name: str) -> Value | None:
        """A name of the class or of one of the user's classes above it; None if there is none."""
        for kind in self.lineage():
            if isinstance(kind, Class) and name in kind.namespace:
                return kind.namespace[name]
        return None

    def keeps_tensor(self, name: str) -> bool:
        """If `self.name` is not known, it is a tensor or plain data: no method calls it."""
        kinds = (kind for kind in self.lineage() if isinstance(kind, Class))
        return all(name not in perhaps_layers(kind.node) for kind in kinds)

    def dotted_bases(self) -> list[str]:
        return [kind.name for kind in self.lineage() if isinstance(kind, LibraryName)]


@dataclass(eq=False, slots=True)
class Instance(Value):
    """An object of a class of the user's that is not a module, optimizer, ..."""

    cls: Class
    attributes: dict[str, Value] = field(default_factory=dict)
    key: str = ""
    assigned_at: dict[str, int] = field(default_factory=dict)
    """Attribute -> how many turns of loops had begun when it was last assigned afresh."""
    turns: int = 0
    """How many had begun when it was made."""
    born: int = field(default_factory=births.__next__)


@dataclass(eq=False, slots=True)
class TrainerObject(Instance):
    """transformers' Trainer, or an object of a user's subclass of it."""

    runs: int = 0
    """How often its `train()` was gone through."""
    running: bool = False


@dataclass(eq=False, slots=True)
class LibraryName(Value):
    """A name of code that is not the user's, dotted and canonical: `torch.nn.functional.relu`."""

    name: str
    chosen: bool = False
    """One of several that a function returns: by the machine, or a variable of the environment."""


@dataclass(eq=False, slots=True)
class LibraryMethod(Value):
    """A method of a thing or of an unknown value: `optimizer.step`, not called yet."""

    receiver: Any
    name: str


@dataclass(eq=False, slots=True)
class CombinedIterable(Value):
    """Something to loop over that is made of other things to loop over."""

    kind: str
    """`enumerate`, `zip`, `range`, `count`, `plain`; `taken`: the next few of an iterator that
    continues after them; `windows`: lists of the next few, until it ends."""
    sources: list[Value]
    """The values that it iterates over; for `range`: start, stop, step; `taken`: how many, too;
    `windows`: how many, and whether the last one may have fewer."""
    start: Any = None
    """`enumerate`: the first number; `plain`: what takes some of the elements, or all again."""
    taken: int = 0
    """How many elements `next` has taken."""

    def __post_init__(self) -> None:
        del self.sources[SIZE:]


@dataclass(eq=False, slots=True)
class Parameters(Value):
    """`model.parameters()`, or some of them."""

    models: list[Model]
    """Modules; all their parameters, or some."""
    tensors: list[Tensor] = field(default_factory=list)
    complete: bool = True
    """All that is in it is known."""
    part: bool = False
    """Only some of the modules' parameters (filtered by name, by `requires_grad`)."""
    holder: Optimizer | None = None
    """The optimizer whose `param_groups` they were taken from."""

    def __post_init__(self) -> None:
        self.complete &= max(len(self.models), len(self.tensors)) <= SIZE
        del self.models[SIZE:], self.tensors[SIZE:]


@dataclass(eq=False, slots=True)
class Generator(Value):
    """The result of calling a generator function of the user's: nothing of it has run yet."""

    function: Function
    args: list[Value]
    kwargs: dict[str, Value]
    begun: bool = False
    """`next` has asked it for a value."""


@dataclass(eq=False, slots=True)
class GeneratorContext(Value):
    """The result of calling a function under `@contextmanager`."""

    function: Function
    args: list[Value]
    kwargs: dict[str, Value]


@dataclass(eq=False, slots=True)
class Super(Value):
    """The result of `super()`: the receiver, seen from the class above."""

    owner: Class | None
    receiver: Any


@dataclass(eq=False, slots=True)
class Imported(Value):
    """A name that was imported from a different file of the project and has not been asked for yet:
    that file is not gone through before."""

    source: str
    """Dotted name of the module; of what is imported itself where `name` is empty."""
    name: str
    near: Module


@dataclass(eq=False, slots=True)
class Namespace(Value):
    """A module of the user's, as a value."""

    scope: Scope


def inside(value: Any, parts: Callable[[Any], Iterable[Value]], depth: int) -> Iterator[Value]:
    """A value and its contents, as `parts` gives them, at most `depth` levels down.

    Depth first, each once, and no more than `VISITS` in all: parts may be shared, and values that
    contain each other may form a circle.
    """
    seen: dict[int, int] = {}
    waiting = [(value, depth)]
    visits = 0
    while waiting and visits < VISITS:
        each, left = waiting.pop()
        visits += 1
        before = seen.get(id(each))
        if before is not None and before >= left:
            continue
        seen[id(each)] = left
        if before is None:
            yield each
        below = parts(each) if left else ()
        if below:
            waiting += [(part, left - 1) for part in reversed([*below])]


def runs_user_code(value: Value | None) -> bool:
    """A call of it runs a function of the user's: itself, its class's `__call__`, or the one that
    a `functools.partial` holds."""
    if isinstance(value, Instance):
        return value.cls.lookup("__call__") is not None
    if isinstance(value, OpaqueObject):
        return any(isinstance(each, (Function, Method)) for each in value.call[:1])
    return isinstance(value, (Function, Method))


MOST_TENSORS = 8
"""Tensors that an unknown value keeps of what its parts were computed from."""


def tensors_behind(parts: Iterable[Value]) -> Iterable[Tensor]:
    """The tensors with a graph that unknown parts were computed from: a graph goes through however
    many operations that are not known."""
    found: dict[int, Tensor] = {}
    for part in parts:
        for each in part.of if type(part) is Unknown and not part.number else ():
            if isinstance(each, Tensor) and each.graph is not False and len(found) < MOST_TENSORS:
                found[id(each)] = each
    return found.values()


def things_in(value: Value | None, depth: int = 4) -> list[Thing]:
    """The things that a value is or contains, through containers and objects of the user's."""
    if isinstance(value, Thing):
        return [value]
    return [each for each in inside(value, parts_of, depth) if isinstance(each, Thing)]


def parts_of(value: Value) -> Iterable[Value]:
    """The values that a value contains or was computed from; nothing for a thing."""
    return _PARTS[type(value)](value)


class _Parts(dict[type, Callable[[Any], Iterable[Value]]]):
    """How the parts of each kind of value are found; a kind that is not here has those of the kind
    that it extends."""

    def __missing__(self, kind: type) -> Callable[[Any], Iterable[Value]]:
        found = next(self[base] for base in kind.__mro__[1:] if base in self)
        self[kind] = found
        return found


_PARTS = _Parts({
    object: lambda value: (),
    # The length of a loader, a text with a model's name in it: no way back to the thing.
    Unknown: lambda value: () if value.number else value.of,
    Sequence: lambda value: value.values,
    DictValue: lambda value: [*value.entries.values(), *value.rest],
    OpaqueObject: lambda value: [*value.arguments.values(), *value.attributes.values()],
    Instance: lambda value: value.attributes.values(),
    Parameters: lambda value: [*value.models, *value.tensors],
    CombinedIterable: lambda value: value.sources,
    Method: lambda value: [value.receiver],
    LibraryMethod: lambda value: [value.receiver],
})  # fmt: skip


def closing(value: Value, windows: list[Any]) -> Value:
    """A truth that hangs on tests of windows too: `(i + 1) % n == 0 or i == last`."""
    if not windows or not isinstance(value, Constant) or not isinstance(value.value, bool):
        return value
    return value if value.modulo is not None else Constant(value.value, modulo=windows[-1])


def kept(value: Value, name: object) -> Value:
    """The value, which is kept under a name: `{"scheduler": StepLR(...)}`. A schedule without a
    name in the code has this one."""
    if isinstance(value, Scheduler) and not value.name and isinstance(name, str):
        value.name = name
    return value


KEEPS_GRAPH = frozenset(
    "to float half double bfloat16 long int bool view reshape flatten squeeze unsqueeze permute"
    " transpose contiguous detach clone cpu cuda numpy item tolist expand expand_as repeat mean sum"
    " max min argmax size dim numel type type_as chunk split unbind masked_fill add_scalar".split()
)
"""Methods that run no backward, whatever they are called on: those of tensors."""
_OF_TURN = re.compile(r"<\d+\.\d+\.[1-9]\d*>")
"""The key of something that was computed within a loop."""


def varies(value: Value) -> bool:
    """It may differ from turn to turn: it hangs on a tensor or on a loop's count."""
    if type(value) is Constant:
        return bool(value.loop_variant)
    return any(map(_varies_itself, inside(value, parts_of, 4)))


def _varies_itself(value: Value) -> bool:
    if isinstance(value, Unknown):
        return bool(value.loop_variant) or _OF_TURN.search(value.key) is not None
    return isinstance(value, Tensor) or bool(loop_of(value))
