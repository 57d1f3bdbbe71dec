"""Modules that are made again and again: blocks of a network, the same from turn to turn.

The constructor of a class is read for the first two modules with arguments of the same kinds. Later
ones get copies of everything that was made in it, and the rules hear the same events of the copies.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar, cast

from trueloop.doctor.model.events import (
    AttributeSet,
    EscapedToUnknown,
    Event,
    FlagsSet,
    HookSet,
    LoopEntered,
    LoopLeft,
    Made,
    ManualUpdate,
    ModeSet,
    Replaced,
    Used,
)
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.known_values import births, shallow_copy
from trueloop.doctor.model.submodules import Submodules
from trueloop.doctor.model.things import Loop, Model, Size, Tensor, Thing, Turn
from trueloop.doctor.static.interpreter.branches import BranchPolicy
from trueloop.doctor.static.interpreter.call_history import ConstructorPattern
from trueloop.doctor.static.interpreter.call_summaries import kinds_of, takes_long
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.values import (
    Class,
    Constant,
    DictValue,
    Function,
    Instance,
    LibraryMethod,
    LibraryName,
    Method,
    Sequence,
    Unknown,
    Value,
    inside,
    parts_of,
)

_HEARD_AGAIN = frozenset(
    {AttributeSet, EscapedToUnknown, FlagsSet, HookSet, LoopEntered, LoopLeft, Made, ManualUpdate}
    | {ModeSet, Replaced, Used}
)
"""Events of a constructor that can be had again for the copies; any other kind makes it one that is
read each time."""
_AS_THEY_ARE = frozenset(
    {str, int, float, bool, bytes, type(None), Location, Constant, LibraryName, Function, Class}
)
"""Nothing changes these."""
DIFFERENT = 4
"""Kinds of arguments of a constructor, after which sizes are all alike."""
FEW = 2
"""Numbers up to this are flags and strides, not sizes."""
READS = 2
"""Modules that are made by reading the constructor; one of them where a loop makes them."""
MOST_EVENTS = 400
MOST_COPIES = 1_500


T = TypeVar("T")


class _NotCopiedError(Exception):
    """A constructor made something that cannot be copied by itself."""


def construct(
    m: Interpreter,
    cls: Class,
    initialise: Function,
    made: Value,
    args: list[Value] | None,
    kwargs: dict[str, Value],
    node: ast.AST,
    read: Callable[[], object],
) -> None:
    """Run the constructor of a class of the user's, or copy what it came to before. `args` is None
    where not all are known."""
    is_alike = isinstance(made, Model) and args is not None
    key = _key_of(m, cls, initialise, args or [], kwargs) if is_alike else None
    if key is None or not isinstance(made, Model):
        read()
        return
    pattern = m.history.patterns.get(key)
    if pattern is None:
        pattern = m.history.patterns[key] = ConstructorPattern()
    given = (*(args or ()), *kwargs.values())
    if pattern.made is not None:
        _repeat(m, pattern, made, given, m.place(node))
        return
    pattern.reads += 1
    if not pattern.fit or (pattern.reads < READS and not m.turns):
        read()
        return
    _record(m, pattern, made, given, read)


def _key_of(
    m: Interpreter,
    cls: Class,
    initialise: Function,
    args: list[Value],
    kwargs: dict[str, Value],
) -> Hashable | None:
    """Equal for calls that make the same module; None where a call is like no other."""
    if m.noted is not None or m.windows or not takes_long(initialise.node):
        return None
    guessed = {identity for identity, _ in m.guessed} if m.guessed else ()
    for each in (*args, *kwargs.values()):
        if id(each) in guessed or any(
            isinstance(part, Thing) for part in inside(each, parts_of, 3)
        ):
            return None
    kinds = kinds_of(args, kwargs)
    if kinds is None:
        return None
    depth = len(m.calls), sum(1 for _, each in m.calls if each is initialise.node)
    modes = m.grad[-1], m.autocast[-1], m.inside_models > 0, min(len(m.turns), 2)
    names = [each.key for each in (*args, *kwargs.values()) if isinstance(each, Unknown)]
    key = id(cls), id(initialise.node), *depth, *modes, *map(names.index, names)
    known = m.history.constructors.setdefault(id(cls), set())
    if len(known) > DIFFERENT:
        return *key, bool(m.guards), _roughly(kinds, m.policy)
    exact = *key, *m.guards, *kinds
    known.add(exact)
    return exact


def _roughly(kinds: Iterable[tuple[str, Any]], policy: BranchPolicy) -> Hashable:
    """The same for sizes of all kinds, as far as those that are equal to each other stay equal;
    but for those that the run was asked to take a condition on for true or false."""
    seen: dict[Hashable, int] = {}
    found: list[Hashable] = []
    for name, own in kinds:
        if not isinstance(own, tuple):
            found.append((name, own))
        elif own[0] == "unknown":
            asked = own[1] if policy.forces_part(own[1]) else ""
            found.append((name, asked, seen.setdefault(own[1], len(seen)), *own[2:6]))
        elif own[0] is int and own[1] is not None and own[1] > FEW:
            found.append((name, seen.setdefault(own[1], len(seen)), *own[2:3]))
        else:
            found.append((name, own))
    return tuple(found)


# ------------------------------------------------------------------------------- recording


def _record(
    m: Interpreter,
    pattern: ConstructorPattern,
    made: Model,
    given: tuple[Value, ...],
    read: Callable[[], object],
) -> None:
    """Read the constructor, and keep what it comes to if that can be copied."""
    history, watch = m.history, m.watch
    born, written, changed = next(births), len(history.written), len(history.changed)
    guessed, turns_begun, settled = len(m.guessed), m.turns_begun, history.settled
    made.born = next(births)
    events: list[Event] = []

    def listen(event: Event) -> None:
        events.append(event)
        watch(event)

    m.watch = listen
    try:
        read()
    finally:
        m.watch = watch
    if history.settled != settled:
        return  # what it made for all to use is not made again
    pattern.fit = (
        all(type(each) in _HEARD_AGAIN for each in events)
        and not any(map(_is_made_anew, events))
        and len(events) <= MOST_EVENTS
        and len(m.guessed) == guessed
        and all(each > born for each in history.changed[changed:])
        and all(each > born or not each for each in history.written[written:])
    )
    if not pattern.fit:
        return
    copying = _Copying(born, {id(each): each for each in given}, m.turns_begun)
    pattern.guards = frozenset(m.guards)
    calls, turns = len(m.calls), len(m.turns)
    try:
        pattern.made = copying.of(made)
        pattern.events = tuple(
            copying.of_event(each, each.stack[calls + 1 :], each.turns[turns:]) for each in events
        )
        again = _Copying(0, {id(each): each for each in given}, m.turns_begun)  # as `_repeat` does
        again.of(pattern.made)
        for each in pattern.events:
            again.of_event(each, each.stack, each.turns)
    except _NotCopiedError:
        pattern.made, pattern.fit = None, False
        return
    pattern.args, pattern.copies = given, copying.copies
    pattern.turns = m.turns_begun - turns_begun


def _is_made_anew(event: Event) -> bool:
    """A loop that trains or validates, or anything but a module: each object has its own optimizer,
    loader or scaler."""
    if isinstance(event, Made):
        return not isinstance(event.thing, (Model, Tensor))
    return isinstance(event, (LoopEntered, LoopLeft)) and event.loop.kind != "other"


# ------------------------------------------------------------------------------- copying


def _repeat(
    m: Interpreter,
    pattern: ConstructorPattern,
    made: Model,
    given: tuple[Value, ...],
    place: Location,
) -> None:
    """Make a module equal to the pattern, and emit the same events for it."""
    assert pattern.made is not None
    m.spend(1 + (pattern.copies >> 1), place)
    m.turns_begun += pattern.turns
    known: dict[int, Any] = {id(old): new for old, new in zip(pattern.args, given, strict=True)}
    known[id(pattern.made)] = made
    copying = _Copying(0, known, m.turns_begun, pattern.guards, frozenset(m.guards))
    copying.sizes = _sizes(pattern.args, given)
    for name, value in vars(pattern.made).items():
        if name not in ("parents", "made", "born", "_inside"):
            setattr(made, name, copying.of(value))
    made.parents += [copying.of(each) for each in pattern.made.parents]
    m.history.write(changed=made.born)
    calls = (*(at for at, _ in m.calls), place)
    for event in pattern.events:
        told = copying.of_event(event, (*calls, *event.stack), event.turns)
        m.serial += 1
        m.made += type(told) is Made
        m.history.hear(type(told), vars(told))
        m.spend(1, place)
        told.serial, told.turns = m.serial, (*m.turns, *told.turns)
        m.watch(told)


def _sizes(before: Iterable[Value], now: Iterable[Value]) -> dict[Size, Size]:
    """The numbers and names that are different for this module."""
    found: dict[Size, Size] = {}
    for old, new in zip(before, now, strict=True):
        if isinstance(old, Unknown) and isinstance(new, Unknown):
            found[old.key] = new.key
        elif isinstance(old, Constant) and isinstance(new, Constant) and type(old.value) is int:
            found[old.value] = new.value
    return found if any(old != new for old, new in found.items()) else {}


class _Copying:
    """Copies of what was made in a constructor; everything else stays what it is."""

    def __init__(
        self,
        born: int,
        known: dict[int, Any],
        turns_begun: int,
        before: frozenset[str] = frozenset(),
        now: frozenset[str] = frozenset(),
    ) -> None:
        self.born = born
        """The number of the last thing before the constructor."""
        self.known = known
        """Value, by identity -> the value that the copy has in its place."""
        self.turns_begun = turns_begun
        self.copies = 0
        self.sizes: dict[Size, Size] = {}
        """Size of the first module -> the size that the copy has in its place."""
        self.before, self.now = before, now
        """The open conditions around the constructor, for the first module and for this one."""

    def of(self, value: T) -> T:
        return cast(T, self._copy_of(value))

    def _copy_of(self, value: object) -> object:
        if type(value) in _AS_THEY_ARE and id(value) not in self.known:
            return value
        found = self.known.get(id(value))
        if found is not None:
            return found
        if isinstance(value, Value):
            return self._of_value(value)
        if isinstance(value, Loop):
            return self._of_object(value)
        if isinstance(value, Turn):
            return Turn(self.of(value.loop), value.index)
        if isinstance(value, (frozenset, tuple)):
            return self._of_tuple(value)
        if type(value) is list:
            return [self.of(each) for each in value]
        if type(value) is dict:
            return {key: self.of(each) for key, each in value.items()}
        if isinstance(value, Submodules):
            return Submodules({name: self.of(each) for name, each in value.items()})
        return value

    def of_event(self, event: Event, stack: tuple[Location, ...], turns: tuple[Turn, ...]) -> Event:
        told = shallow_copy(event)
        for name, value in vars(event).items():
            if type(value) not in _AS_THEY_ARE and name not in ("stack", "turns", "guards"):
                setattr(told, name, self.of(value))
        told.guards = self._guards(event.guards)
        told.stack, told.turns = stack, tuple(self.of(each) for each in turns)
        return told

    def _of_value(self, value: Value) -> object:
        if isinstance(value, (Model, Instance, Sequence, DictValue)):
            # Those of a pattern have the numbers that they got as copies.
            return self._of_object(value) if value.born > self.born else value
        if isinstance(value, Tensor):
            return self._of_object(value)
        if isinstance(value, Unknown):
            return self._of_unknown(value)
        if isinstance(value, Method):
            return Method(self.of(value.receiver), value.function)
        if isinstance(value, LibraryMethod):
            return LibraryMethod(self.of(value.receiver), value.name)
        for part in inside(value, parts_of, 3):
            if isinstance(part, Tensor) or (isinstance(part, Model) and part.born > self.born):
                raise _NotCopiedError
        return value

    def _of_unknown(self, value: Unknown) -> Unknown:
        found = copy.copy(value)
        self.known[id(value)] = found
        found.of, found.attributes = tuple(self.of(each) for each in value.of), {}
        if self.sizes:
            found.key, found.shape = str(self._size(found.key)), self._shape(found.shape)
        return found

    def _size(self, size: Size) -> Size:
        if size in self.sizes:
            return self.sizes[size]
        if isinstance(size, int):
            return size if size <= FEW else None
        for old, new in self.sizes.items() if size is not None else ():
            if isinstance(old, str) and old:
                size = str(size).replace(old, str(new))
        return size

    def _shape(self, shape: tuple[Size, ...] | None) -> tuple[Size, ...] | None:
        return None if shape is None else tuple(map(self._size, shape))

    def _of_object(self, value: Value | Loop) -> object:
        self.copies += 1
        shares = isinstance(value, Model) and any(
            each.born <= self.born for each in value.children.values()
        )
        if shares or self.copies > MOST_COPIES:
            raise _NotCopiedError
        found = shallow_copy(value)
        self.known[id(value)] = found
        if isinstance(found, (Sequence, DictValue, Instance)):
            self._fill(found)
        else:
            for name, each in vars(value).items():
                if type(each) not in _AS_THEY_ARE and name != "_inside":
                    setattr(found, name, self.of(each))
        if isinstance(found, (Model, Instance, Sequence, DictValue)):
            found.born = next(births)
        if isinstance(found, Model):
            found._inside, found.guards = None, self._guards(found.guards)
        if self.sizes and isinstance(found, Tensor):
            found.shape, found.values = self._shape(found.shape), None
        elif self.sizes and isinstance(found, Model):
            found.arguments = {
                name: self._size(each) if type(each) is int else each
                for name, each in found.arguments.items()
            }
        return found

    def _fill(self, found: Sequence | DictValue | Instance) -> None:
        if isinstance(found, Sequence):
            found.values = [self.of(each) for each in found.values]
            found.turns = self.turns_begun
        elif isinstance(found, DictValue):
            found.entries = {key: self.of(each) for key, each in found.entries.items()}
            found.rest = [self.of(each) for each in found.rest]
            found.keys_of_rest = [self.of(each) for each in found.keys_of_rest]
            found.turns = self.turns_begun
        else:
            found.attributes = {name: self.of(each) for name, each in found.attributes.items()}
            found.assigned_at = dict.fromkeys(found.assigned_at, self.turns_begun)
            found.turns = self.turns_begun

    def _guards(self, guards: frozenset[str]) -> frozenset[str]:
        if self.before != self.now:
            guards = guards - self.before | self.now
        return frozenset(str(self._size(each)) for each in guards) if self.sizes else guards

    def _of_tuple(self, value: frozenset[Any] | tuple[Any, ...]) -> object:
        parts = [self.of(each) for each in value]
        if all(new is old for new, old in zip(parts, value, strict=True)):
            return value
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
