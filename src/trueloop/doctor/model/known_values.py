"""Values: what an expression is known to be.

Reading source makes them of everything; watching makes containers of what is saved to a file.
"""

from __future__ import annotations

import copy
import hashlib
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any, TypeVar

from trueloop.doctor.model.arithmetic import SIZE
from trueloop.doctor.model.findings import Location

births = count(1)
"""Containers, numbered as they are made: those made in a call have higher numbers."""
KEY = 400
"""Characters of a key; the rest of a longer one is a digest of it."""


class Value:
    """A thing, or one of the values below or in `static.interpreter.values`."""

    __slots__ = ()


@dataclass(eq=False, slots=True)
class Constant(Value):
    """A constant: number, text, bool, None, bytes, Ellipsis."""

    value: Any
    loop_variant: object = None
    """The `Loop` that counts it (or True for a counter that a loop increments): a number that
    represents many."""
    modulo: Any = None
    """The `AccumulationWindow` that it was taken modulo, where it is the remainder of such a
    number, or the outcome of a test of one."""
    counts: object = None
    """The `Loop` whose turns a statement counts in it, from nothing at each start of the loop."""
    symbol: str = ""
    """The program's name of the quantity, if it was an option that had to be given a number."""


@dataclass(eq=False, slots=True)
class Unknown(Value):
    """Something that cannot be known."""

    key: str
    """Says where it comes from; equal keys are equal values within one run."""
    of: tuple[Value, ...] = ()
    """Values that it was computed from."""
    loop_variant: bool = False
    """It changes with the loops around it."""
    equals: tuple[str, Any] | None = None
    """It is the outcome of comparing the unknown of this key with this constant."""
    number: bool = False
    """It is a plain number, text or flag: whatever it was computed from, no graph leads through."""
    drawn: bool = False
    """It was drawn at random, or read off a clock."""
    text: str | None = None
    """The text that it is in this turn of the loops: what they count is known as far as they are
    gone through."""
    attributes: dict[str, Value] = field(default_factory=dict)
    shape: tuple[int | str | None, ...] | None = None
    """Of an array, where constants decide it; see `things.Size`."""
    dtype: str | None = None
    statistic_of: Value | None = None
    """See `Tensor.statistic_of`."""

    def __post_init__(self) -> None:
        if len(self.key) > KEY:
            self.key = short_key(self.key)
        if len(self.of) > SIZE:
            self.of = self.of[:SIZE]


@dataclass(eq=False, slots=True)
class Sequence(Value):
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
    """Loops that are not gone through to their end, training or not, have added to it: in a real
    run it is longer than here."""
    total: int | None = None
    """How many elements it has in a real run, where that is known and not all are in `values`."""
    growing: int = 0
    """Loops that add to it and are not over."""
    uncounted: bool = False
    """Something was added that nobody can count."""
    sites: frozenset[int] = frozenset()
    """The statements that add to it, by identity."""
    filler: Any = None
    """The number that makes it as long as others."""
    born: int = field(default_factory=births.__next__)

    def __post_init__(self) -> None:
        if len(self.values) > SIZE:
            del self.values[SIZE:]
            self.open = True

    @property
    def length(self) -> int | None:
        """How many elements it has in a real run; None where that is not known."""
        if self.growing or self.uncounted or self.kind == "deque":
            return None
        if self.total is not None:
            return self.total
        return None if self.open or self.grown else len(self.values)

    def add(self, value: Any) -> None:
        """Append a value, as long as there is room."""
        if len(self.values) < SIZE:
            self.values.append(value)
        else:
            self.open = True


@dataclass(eq=False, slots=True)
class DictValue(Value):
    """A dict."""

    entries: dict[Any, Value]
    """Constant key -> value."""
    open: bool = False
    rest: list[Value] = field(default_factory=list)
    """Values under keys that are not known."""
    turns: int = 0
    begins_with: int | float | None = None
    """Of a `defaultdict` of numbers: an entry that is not there yet."""
    born: int = field(default_factory=births.__next__)
    assigned_at: dict[Any, int] = field(default_factory=dict)
    """How many turns had begun when an entry was last assigned afresh."""
    keys_of_rest: list[Value] = field(default_factory=list)
    """Modules and parameters that are keys, as far as they were noted."""

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
class OpaqueObject(Value):
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
    """The value that a `with` block binds; itself where None."""
    grad: bool | None = None
    """The autograd mode that a `with` block sets; None where it does not switch it."""
    autocast: str | None = ""
    """The dtype in which a `with` block computes, see `Event.autocast`; empty for no change."""
    forks_rng: bool = False
    """A `with` block restores the state of torch's generators."""
    accumulates: Value | None = None
    """The model of Accelerate's `accumulate`: in a `with` block of it, prepared optimizers skip
    steps and clearings."""


NONE = Constant(None)
Copied = TypeVar("Copied")


def shallow_copy(value: Copied) -> Copied:
    """`copy.copy`, in a third of its time for what has a `__dict__`: things and events."""
    fields = getattr(value, "__dict__", None)
    if fields is None:
        return copy.copy(value)
    made = object.__new__(type(value))
    made.__dict__.update(fields)
    return made


def loop_of(value: object) -> object:
    """The loop that a value changes with, or True if it is not known; None or False for neither."""
    return value.loop_variant if isinstance(value, (Constant, Unknown)) else None


def contents(value: object) -> list[Value]:
    """The values of a container under keys that are known; nothing for other values."""
    if isinstance(value, DictValue):
        return [*value.entries.values()]
    return value.values if isinstance(value, Sequence) else []


def constant(value: Any, otherwise: Any = None) -> Any:
    """The constant that a value is; `otherwise` if it is none."""
    return value.value if isinstance(value, Constant) else otherwise


def short_key(key: str) -> str:
    """A long key, cut: equal for equal ones, and with its beginning."""
    if key.startswith("not "):
        return f"not {short_key(key[4:])}"
    found = hashlib.blake2b(key.encode("utf-8", "backslashreplace"), digest_size=12).hexdigest()
    return f"{key[: KEY // 2]}…<{found}>"
