"""The arguments of an update's calls, found again in the variables of the program.

Keeping the calls of every update would cost every update. Most loops keep the arguments of a model
and its loss in variables of the function that runs the backward: if that was so in the sampled
updates, no calls of the others are kept, and they are put together again from there when one is
asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

import torch

from trueloop.doctor.live.frames import user_frames
from trueloop.doctor.live.frames.live_expressions import UNKNOWN, FrameNames
from trueloop.doctor.live.nonfinite import recent_calls
from trueloop.doctor.live.nonfinite.rerun import Rerun, untouched

if TYPE_CHECKING:
    from types import CodeType

    from trueloop.doctor.live.nonfinite.recent_calls import RecentCalls

_ENOUGH = 3
"""Updates that must agree."""
_CERTAIN = 8
"""Updates that must agree for only some of the next ones to be looked at: what is found again is
checked once more when it is asked for."""
_EVERY = 4
_MOST = 16
"""Entries of a list or a dict that are looked through."""
_PLAIN = (bool, int, float, str, type(None))

Source = tuple[Any, ...]
"""`("variable", name)`, `("entry", name, key)`, `("result", call, position)` or `("plain", type,
value)`."""


class Pattern(NamedTuple):
    """One call, as each update makes it."""

    function: Any
    """A weak reference if it is a module."""
    offset: int
    autocast: Any
    results: int
    """Tensors that it gives."""
    names: tuple[Any, ...]
    """Of its arguments: a number for one by place."""
    sources: tuple[frozenset[Source], ...]
    """Where each argument was found, in all of the updates."""
    called: frozenset[Source]
    """Where the function itself was found; it may be nowhere."""


class CallReconstruction:
    """The calls of the one backward that a program runs."""

    def __init__(self, calls: RecentCalls) -> None:
        self._calls = calls
        self.code: CodeType | None = None
        self.offset = -1
        """Where the backward is."""
        self._patterns: list[Pattern] = []
        self._seen = 0
        self._spoilt = False

    @property
    def is_known(self) -> bool:
        return not self._spoilt and self._seen >= _ENOUGH

    @property
    def model(self) -> Any:
        """The function that is called first."""
        return _alive(self._patterns[0].function)

    def is_at(self, frame: FrameType) -> bool:
        """The program is where its backward is, and has what it calls."""
        at = frame.f_code is self.code and frame.f_lasti == self.offset
        return at and self.model is not None

    # ------------------------------------------------------------------ learnt while looking

    def learn(self, raws: list[list[Any]], frame: FrameType, *, keeps: bool) -> None:
        """A backward has ended, with these calls before it; `keeps`: a second one may follow."""
        if self._spoilt:
            return
        frame = user_frames.of_program(frame)
        same_place = (self.code, self.offset) == (frame.f_code, frame.f_lasti)
        if self._seen >= _CERTAIN and self._seen % _EVERY and same_place:
            self._seen += 1
            return
        found = None
        draws = self._calls.draws
        # What is drawn would have to be drawn again, and a function that has ended has taken its
        # variables along.
        are_fit = all(each[3] is frame.f_code and not draws.get(each[0]) for each in raws)
        if are_fit and not keeps and len(raws) < recent_calls.MOST:
            found = _patterns(raws, frame)
        if found is not None and self._seen:
            found = _agreed(self._patterns, found) if same_place else None
        if found is None:
            self._spoilt = True
            self._patterns, self.code = [], None
            return
        self._patterns, self.code, self.offset = found, frame.f_code, frame.f_lasti
        self._seen += 1

    # ------------------------------------------------------------------ asked for

    def again(self, frame: FrameType) -> list[list[Any]]:
        """The calls before the current backward; as many of them as can be put together."""
        frame = user_frames.of_program(frame)
        code: CodeType = frame.f_code
        if not self.is_known or not self.is_at(frame):
            return []
        names = FrameNames(frame)
        try:
            return self._assemble(names, code)
        finally:
            names.forget()

    def _assemble(self, names: FrameNames, code: CodeType) -> list[list[Any]]:
        raws: list[list[Any]] = []
        given: dict[tuple[int, int], Any] = {}
        """The results of calls, as far as later ones take them."""
        for pattern in self._patterns:
            found = [self._find(each, names, raws, given) for each in pattern.sources]
            function = _alive(pattern.function)
            if pattern.called:  # a different one may have the name now
                function = self._find(pattern.called, names, raws, given)
            if not callable(function) or any(each is UNKNOWN for each in found):
                break
            args = [v for k, v in zip(pattern.names, found, strict=True) if isinstance(k, int)]
            kwargs = {k: v for k, v in zip(pattern.names, found, strict=True) if isinstance(k, str)}
            raws.append(
                [function, tuple(args), kwargs, code, pattern.offset, None, pattern.autocast, ()]
            )
        for number, raw in enumerate(raws):
            made = [given.get((number, at)) for at in range(self._patterns[number].results)]
            raw[7] = tuple(_gone if each is None else ref(each) for each in made)
        return raws

    def _find(
        self,
        sources: frozenset[Source],
        names: FrameNames,
        raws: list[list[Any]],
        given: dict[tuple[int, int], Any],
    ) -> Any:
        """One argument; unknown where its sources do not agree any more."""
        read = (_read(source, names) for source in sources)
        values = [each for each in read if each is not UNKNOWN]
        results = [source[1:] for source in sources if source[0] == "result"]
        if len(values) + len(results) < len(sources):
            return UNKNOWN
        if values and not all(_same(values[0], each) for each in values):
            return UNKNOWN
        value = values[0] if values else UNKNOWN
        for call, position in results:
            place = (call, position)
            if value is UNKNOWN:
                value = given.get(place, UNKNOWN)
            if value is UNKNOWN:
                value = self._made(raws[call], position)
            if value is not UNKNOWN:
                given[place] = value
        return value

    def _made(self, raw: list[Any], position: int) -> Any:
        """The result of a call that the program has put into no variable; unknown if it cannot be
        computed again."""
        try:
            with untouched(self._calls):
                made = Rerun(grad=False).make(recent_calls.Call(raw)).outputs[position]
        except Exception:  # whatever the program's code raises when it is called by itself
            return UNKNOWN
        return made.detach().requires_grad_(made.is_floating_point())


def _patterns(raws: list[list[Any]], frame: FrameType) -> list[Pattern] | None:
    """None where something cannot be found again."""
    names = FrameNames(frame)
    try:
        variables = _variables(names, frame.f_code)
    finally:
        names.forget()
    results: dict[int, set[Source]] = {}
    found = []
    for number, raw in enumerate(raws):
        function, args, kwargs, _, offset, _, autocast, outputs = raw
        given = dict[Any, Any](enumerate(args)) | kwargs
        sources = tuple(frozenset(_sources(each, variables, results)) for each in given.values())
        if not all(sources):
            return None
        is_module = isinstance(function, torch.nn.Module)
        found.append(
            Pattern(
                ref(function) if is_module else function,
                offset,
                autocast,
                len(outputs),
                tuple(given),
                sources,
                frozenset(variables.get(id(function), ())),
            )
        )
        for position, output in enumerate(outputs):
            results.setdefault(id(output()), set()).add(("result", number, position))
    return found


def _variables(names: FrameNames, code: CodeType) -> dict[int, set[Source]]:
    """`id` of a value -> the variables that refer to it."""
    found: dict[int, set[Source]] = {}
    for name in {*code.co_varnames, *code.co_freevars, *code.co_cellvars, *code.co_names}:
        value = names.named(name)
        if value is UNKNOWN:
            continue
        found.setdefault(id(value), set()).add(("variable", name))
        for key, entry in _entries(value):
            found.setdefault(id(entry), set()).add(("entry", name, key))
    return found


def _entries(value: object) -> Iterator[tuple[Any, Any]]:
    if (type(value) is list or type(value) is tuple) and len(value) <= _MOST:
        yield from enumerate(value)
    elif type(value) is dict and len(value) <= _MOST:
        yield from ((key, entry) for key, entry in value.items() if type(key) in (str, int))


def _sources(
    value: object, variables: dict[int, set[Source]], results: dict[int, set[Source]]
) -> set[Source]:
    if isinstance(value, recent_calls.Light):
        value = value.tensor()
    if type(value) in _PLAIN:
        return {("plain", type(value), value)} | variables.get(id(value), set())
    return variables.get(id(value), set()) | results.get(id(value), set())


def _agreed(known: list[Pattern], found: list[Pattern]) -> list[Pattern] | None:
    """Where the arguments of the same calls are found in both."""
    if [each[:-2] for each in known] != [each[:-2] for each in found]:
        return None
    agreed = [
        each._replace(
            sources=tuple(a & b for a, b in zip(each.sources, now.sources, strict=True)),
            called=each.called & now.called,
        )
        for each, now in zip(known, found, strict=True)
    ]
    return agreed if all(all(each.sources) for each in agreed) else None


def _read(source: Source, names: FrameNames) -> Any:
    kind, *details = source
    if kind == "plain":
        return details[1]
    if kind == "result":
        return UNKNOWN
    value = names.named(str(details[0]))
    if kind == "variable":
        return value
    return next((entry for key, entry in _entries(value) if key == details[1]), UNKNOWN)


def _same(one: Any, other: Any) -> bool:
    if type(one) in _PLAIN:
        return type(one) is type(other) and one == other
    return one is other


def _alive(function: Any) -> Any:
    return function() if isinstance(function, ref) else function


def _gone() -> None:
    return None
