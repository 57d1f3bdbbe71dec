"""What an expression may be worth, as far as the source says.

A value is one of
- a thing of `events` (Model, Optimizer, Tensor, ...);
- `Constant`: a constant of Python;
- `Sequence`, `DictValue`: containers whose contents are (partly) known;
- `Function`, `Method`, `Class`, `Instance`: the user's own code;
- `LibraryName`: a dotted name of code that is not the user's (`torch.nn.Linear`);
- `Unknown`: anything. Two unknowns with the same key are the same value.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from trueloop.doctor.model.arithmetic import SIZE
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.things import Model, Optimizer, Tensor, Thing
from trueloop.doctor.static.interpreter.survey import FileSummary

KEY = 400
"""Characters of a key; the rest of a longer one is a digest of it."""
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
    """Dotted name of the package it lies in, for relative imports."""


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
    """What happens with a value that is yielded; returns the value sent back."""

    def find(self, name: str) -> Scope | None:
        """The scope that holds a name; class bodies are seen only from themselves."""
        scope: Scope | None = self.outer.get(name, self)
        first = True
        while scope is not None:
            if name in scope.variables and (first or not scope.is_class):
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
class Constant:
    """A constant: number, text, bool, None, bytes, Ellipsis."""

    value: Any
    looped: Any = None
    """The `Loop` that counts it (or True for a counter that a loop increments): a number that
    represents many."""
    modulo: Any = None
    """The `AccumulationWindow` that it was taken modulo, where it is the remainder of a looped
    number, or the outcome of a test of one."""
    symbol: str = ""
    """What the program calls the quantity, where it was an option that had to be given a number."""


@dataclass(eq=False, slots=True)
class Unknown:
    """Something that cannot be known."""

    key: str
    """Says where it comes from; equal keys are equal values within one run."""
    of: tuple[Value, ...] = ()
    """Values that it was computed from."""
    looped: bool = False
    """It changes with the loops around it."""
    equals: tuple[str, Any] | None = None
    """It is the outcome of comparing the unknown of this key with this constant."""
    number: bool = False
    """It is a plain number, text or flag: whatever it was computed from, no graph leads through."""
    attributes: dict[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.key) > KEY:
            self.key = short_key(self.key)
        if len(self.of) > SIZE:
            self.of = self.of[:SIZE]


@dataclass(eq=False, slots=True)
class Sequence:
    """A list, tuple, set or generator."""

    kind: str
    """`list`, `tuple`, `set`, `generator`."""
    values: list[Value]
    open: bool = False
    """There may be more than `values`: they are samples of what is in it."""
    made: Location | None = None
    turns: int = 0
    """How many turns of loops had begun when it was made: older than the current turn or not."""
    grown: bool = False
    """Turns of training have added to it: in a real run it is longer than here."""

    def __post_init__(self) -> None:
        if len(self.values) > SIZE:
            del self.values[SIZE:]
            self.open = True

    def add(self, value: Any) -> None:
        """Append a value, as long as there is room."""
        if len(self.values) < SIZE:
            self.values.append(value)
        else:
            self.open = True


@dataclass(eq=False, slots=True)
class DictValue:
    """A dict."""

    entries: dict[Any, Value]
    """Constant key -> value."""
    open: bool = False
    rest: list[Value] = field(default_factory=list)
    """Values under keys that are not known."""
    turns: int = 0

    def __post_init__(self) -> None:
        if len(self.entries) > SIZE:
            self.entries = dict(islice(self.entries.items(), SIZE))
            self.open = True
        del self.rest[SIZE:]

    def put(self, key: Any, value: Any) -> None:
        """`table[key] = value` for a constant key."""
        if key in self.entries or len(self.entries) < SIZE:
            self.entries[key] = value
        else:
            self.put_somewhere(value)

    def put_somewhere(self, value: Any) -> None:
        """`table[key] = value` for a key that is not known."""
        self.open = True
        if len(self.rest) < SIZE:
            self.rest.append(value)

    def merge(self, other: DictValue) -> None:
        """`table.update(other)`."""
        for key, value in other.entries.items():
            self.put(key, value)
        for value in other.rest:
            self.put_somewhere(value)
        self.open |= other.open


@dataclass(eq=False, slots=True)
class Function:
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
class Method:
    """A function of the user's, bound to what it is a method of."""

    receiver: Any
    function: Function


@dataclass(eq=False, slots=True)
class Class:
    """A class of the user's."""

    node: ast.ClassDef
    module: Module
    name: str
    bases: list[Value]
    namespace: dict[str, Value]
    scope: Scope | None = None
    fields: list[str] = field(default_factory=list)
    """What a dataclass is made of, in order."""

    def lineage(self) -> list[Value]:
        """Itself and its bases, depth first: classes of the user's, and dotted names."""
        found: dict[int, Any] = {}
        waiting: list[Value] = [self]
        while waiting and len(found) < 50:
            kind = waiting.pop()
            if id(kind) in found:
                continue
            found[id(kind)] = kind
            if isinstance(kind, Class):
                waiting += kind.bases[49::-1]
        return list(found.values())

    def lookup(self, name: str) -> Value | None:
        """A name of the class or of one of the user's classes above it; None if there is none."""
        for kind in self.lineage():
            if isinstance(kind, Class) and name in kind.namespace:
                return kind.namespace[name]
        return None

    def dotted_bases(self) -> list[str]:
        return [kind.name for kind in self.lineage() if isinstance(kind, LibraryName)]


@dataclass(eq=False, slots=True)
class Instance:
    """An object of a class of the user's that is not a module, optimizer, ..."""

    cls: Class
    attributes: dict[str, Value] = field(default_factory=dict)
    key: str = ""
    assigned_at: dict[str, int] = field(default_factory=dict)
    """Attribute -> how many turns of loops had begun when it was last assigned afresh."""


@dataclass(eq=False, slots=True)
class LibraryName:
    """A name of code that is not the user's, dotted and canonical: `torch.nn.functional.relu`."""

    name: str


@dataclass(eq=False, slots=True)
class LibraryMethod:
    """A method of a thing or of an unknown value: `optimizer.step`, not called yet."""

    receiver: Any
    name: str


@dataclass(eq=False, slots=True)
class OpaqueObject:
    """An object that a library made and that nothing here understands in detail."""

    kind: str
    """Dotted name of what made it: `accelerate.Accelerator`, `sklearn.decomposition.PCA`."""
    arguments: dict[str, Value] = field(default_factory=dict)
    attributes: dict[str, Value] = field(default_factory=dict)
    key: str = ""
    made: Location | None = None
    """Where; None for a generator made in a worker."""
    call: list[Value] = field(default_factory=list)
    """Of a `functools.partial`: the function, and its first arguments."""
    entered: Value | None = None
    """What a `with` block binds; itself where None."""
    grad: bool | None = None
    """What a `with` block switches autograd to; None where it does not switch it."""
    autocast: str | None = ""
    """What a `with` block computes in, see `Event.autocast`; empty where it does not change it."""
    forks_rng: bool = False
    """A `with` block restores the state of torch's generators."""


@dataclass(eq=False, slots=True)
class CombinedIterable:
    """Something to loop over that is made of other things to loop over."""

    kind: str
    """`enumerate`, `zip`, `range`, `count`, `plain`."""
    sources: list[Value]
    """What it goes through; for `range`: start, stop, step."""
    start: Any = None
    """`enumerate`: the first number."""

    def __post_init__(self) -> None:
        del self.sources[SIZE:]


@dataclass(eq=False, slots=True)
class Parameters:
    """`model.parameters()`, or some of them."""

    models: list[Model]
    """Modules; all their parameters, or some."""
    tensors: list[Tensor] = field(default_factory=list)
    whole: bool = True
    """All that is in it is known."""
    part: bool = False
    """Only some of the modules' parameters (filtered by name, by `requires_grad`)."""
    holder: Optimizer | None = None
    """The optimizer whose `param_groups` they were taken from."""

    def __post_init__(self) -> None:
        self.whole &= max(len(self.models), len(self.tensors)) <= SIZE
        del self.models[SIZE:], self.tensors[SIZE:]


@dataclass(eq=False, slots=True)
class Generator:
    """What calling a generator function of the user's returns: nothing of it has run yet."""

    function: Function
    args: list[Value]
    kwargs: dict[str, Value]


@dataclass(eq=False, slots=True)
class GeneratorContext:
    """What calling a function under `@contextmanager` returns."""

    function: Function
    args: list[Value]
    kwargs: dict[str, Value]


@dataclass(eq=False, slots=True)
class Super:
    """What `super()` returns: the receiver, seen from the class above."""

    owner: Class | None
    receiver: Any


@dataclass(eq=False, slots=True)
class Imported:
    """A name that was imported from a different file of the project and has not been asked for yet:
    that file is not gone through before."""

    source: str
    """Dotted name of the module; of what is imported itself where `name` is empty."""
    name: str
    near: Module


@dataclass(eq=False, slots=True)
class Namespace:
    """A module of the user's, as a value."""

    scope: Scope


Value = (
    Constant | Unknown | Sequence | DictValue | Function | Method | Class | Instance | LibraryName
    | LibraryMethod | OpaqueObject | CombinedIterable | Parameters | Generator | Namespace
    | GeneratorContext | Super | Imported | Thing
)  # fmt: skip

NONE = Constant(None)


def constant(value: Any, otherwise: Any = None) -> Any:
    """The constant that a value is; `otherwise` if it is none."""
    return value.value if isinstance(value, Constant) else otherwise


def short_key(key: str) -> str:
    """A long key, cut: equal for equal ones, and with its beginning."""
    if key.startswith("not "):
        return f"not {short_key(key[4:])}"
    found = hashlib.blake2b(key.encode("utf-8", "backslashreplace"), digest_size=12).hexdigest()
    return f"{key[: KEY // 2]}…<{found}>"


def inside(value: Any, parts: Callable[[Any], Iterable[Value]], depth: int) -> Iterator[Value]:
    """A value and what lies inside it, as `parts` says, at most `depth` levels down.

    Depth first, each once, and no more than `VISITS` in all: parts may be shared, and values that
    hold each other may go round in a circle.
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
        if left:
            waiting += [(part, left - 1) for part in reversed([*parts(each)])]


def things_in(value: Any, depth: int = 4) -> list[Thing]:
    """The things that a value is or holds, through containers and objects of the user's."""
    if isinstance(value, Thing):
        return [value]
    return [each for each in inside(value, parts_of, depth) if isinstance(each, Thing)]


def parts_of(value: Any) -> Iterable[Value]:
    """What a value holds or was computed from; nothing for a thing."""
    if isinstance(value, Unknown):
        # The length of a loader, a text with a model's name in it: no way back to the thing.
        return () if value.number else value.of
    if isinstance(value, Sequence):
        return value.values
    if isinstance(value, DictValue):
        return [*value.entries.values(), *value.rest]
    if isinstance(value, OpaqueObject):
        return [*value.arguments.values(), *value.attributes.values()]
    if isinstance(value, Instance):
        return value.attributes.values()
    if isinstance(value, Parameters):
        return [*value.models, *value.tensors]
    if isinstance(value, CombinedIterable):
        return value.sources
    return [value.receiver] if isinstance(value, (Method, LibraryMethod)) else ()
