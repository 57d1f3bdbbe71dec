"""The abstract machine: what it knows at a moment of a run, and what it can be asked.

One machine makes one run: a path through the program with each open condition decided once.
"""

from __future__ import annotations

import ast
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any, NamedTuple

from trueloop.doctor.model.events import Backward, EscapedToUnknown, Event, GraphEscaped, Made
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.known_values import loop_of
from trueloop.doctor.model.things import AccumulationWindow, Model, Size, Tensor, Thing
from trueloop.doctor.static.interpreter.branches import BranchPolicy, OpenBranch, text_in
from trueloop.doctor.static.interpreter.call_history import CallHistory, Reach
from trueloop.doctor.static.interpreter.joined_conditions import (
    Junction,
    Limits,
    limited,
    note_limit,
)
from trueloop.doctor.static.interpreter.option_defaults import decided_by_default
from trueloop.doctor.static.interpreter.process_environment import ProcessEnvironment
from trueloop.doctor.static.interpreter.project import Project
from trueloop.doctor.static.interpreter.surroundings import Surroundings
from trueloop.doctor.static.interpreter.syntax import place_of
from trueloop.doctor.static.interpreter.values import (
    KEEPS_GRAPH,
    KEY,
    Class,
    Constant,
    DictValue,
    Function,
    Instance,
    LibraryMethod,
    LibraryName,
    Method,
    Module,
    OpaqueObject,
    Scope,
    Sequence,
    Unknown,
    Value,
    inside,
    parts_of,
    short_key,
    tensors_behind,
    varies,
)

DEPTH = 14
"""Calls within calls that are entered; deeper ones are taken as unknown."""
_SEVERAL = {"> 1": True, ">= 2": True, "!= 1": True, "== 1": False, "<= 1": False, "< 2": False}
"""The results of comparisons with a number that is more than one."""


class ControlFlow(Enum):
    """Why a block was left before its end."""

    BREAK = 1
    CONTINUE = 2
    RETURN = 3
    RAISE = 4


_TRUE = re.compile(
    r"torch\.(nn\.([a-z]\w*\.)*[A-Z]\w*|nn\.functional\.\w+|optim\.[\w.]*[A-Z]\w*"
    r"|(b?float\d|half$|double$)\w*)$"
)
"""Classes, functions and dtypes, which are always true: `if activation:`, `if dtype:`."""


class LeaveGenerator(Exception):  # noqa: N818 - it carries a signal, it is not an error
    """Who consumes a generator of the user's has enough."""


class CallRecord(NamedTuple):
    """A call, written down for who asked."""

    function: Any
    args: list[Value]
    kwargs: dict[str, Value]
    place: Location
    inside: tuple[str, ...]
    """The functions of the user's that it was made in, outermost first."""


class Interpreter(Surroundings, ABC):
    """The state of one run, and what moves it on: `interpreter.Interpreter` is the one there is."""

    def __init__(
        self,
        project: Project,
        watch: Callable[[Event], None],
        policy: BranchPolicy | None = None,
        budget: int = 60_000,
        depth: int = DEPTH,
    ) -> None:
        super().__init__(budget)
        self.project = project
        self.watch = watch
        self.policy = policy or BranchPolicy()
        self.depth = depth
        self.serial = 0
        self.numbers: dict[int, tuple[Any, int]] = {}
        """Values that were asked for a private key, by identity: the value, and its number."""
        self.fetches: dict[int, tuple[Value, int]] = {}
        """Unknown values that were fetched as data, by identity, and in which turn."""
        self.guessed: dict[tuple[int, type[Value]], tuple[Value, Value]] = {}
        """Unknown values, by identity, and the things that they were taken for."""
        self.escaped: set[tuple[str, frozenset[Model], int]] = set()
        """Functions that cannot be read and were given tensors with a graph: of which models, and
        in which loop."""
        self.tested: list[AccumulationWindow] = []
        """The windows that the test under way has asked about."""
        self.rest_in: tuple[AccumulationWindow, ...] = ()  # of the block, where a branch leaves it
        self.modules: list[Module] = []
        self.functions: list[str] = []
        self.receivers: list[Value] = []
        """The objects whose methods the active functions are; None for plain functions."""
        self.assigned: ast.expr | None = None
        """The expression whose value is being assigned."""
        self.grad: list[bool | None] = [True]
        self.autocast: list[str | None] = [None]
        self.forked = 0
        self.accumulating: list[Value] = []  # the models of Accelerate's `accumulate` blocks
        self.beginning = False
        """The next function is entered without a caller: its defaults are options, not values."""
        self.inside_models = 0  # of how many modules the machine is in the `forward`
        self.switched_on: list[Model] = []  # see `ModelForward`
        self._begin()

    def _begin(self) -> None:
        """The findings of the run, still empty."""
        self.decided: dict[str, bool] = {}
        self.junctions: dict[str, Junction] = {}
        self.limits: Limits = {}
        """Quantity -> what was decided about it and a number: (comparison, number, outcome)."""
        self.equal: dict[str, Value] = {}
        self.named: dict[str, str] = {}
        """Option, by its key -> its default, which has named one of several things."""
        self.environment = ProcessEnvironment()
        self.windowed: set[str] = set()
        """Sizes of windows (`(i + 1) % n`), by their key, that this run takes for more than one."""
        self.sites: dict[int, OpenBranch] = {}
        self.reached: set[tuple[int, bool]] = set()
        self.chose = False  # between the values of a conditional expression, by an open condition
        self.entered: dict[int, Module] = {}
        """Functions of the user's that were entered, by the identity of their node."""
        self.backwards: set[int] = set()  # the `.backward` that were called, likewise
        self.passed_by: set[int] = set()  # those in branches for other options than this run's
        self.ticks_passed_by: dict[int, tuple[bool, Location, tuple[int, ...]]] = {}
        """Tests, by identity, that keep a schedule from stepping: outcome, place, and the steps."""
        self.varying: set[str] = set()
        """Open conditions, by their key, that may differ from turn to turn."""
        self.bare: set[int] = set()
        """Calls that are whole statements: the result is not used."""
        self.mode_asked: tuple[Model, bool] | None = None  # who last asked; had it asked before?
        self.noted: list[CallRecord] | None = None
        """The calls that were made, where somebody asked for them."""
        self.attributes_set: dict[tuple[int, str], tuple[object, int]] = {}
        """Of other objects than instances of plain classes: see `Instance.assigned_at`."""
        self.history = CallHistory()
        self.reach = Reach()
        self.namespaces: dict[int, Scope] = {}
        """Module scopes of this run."""

    def forget(self) -> None:
        """Empty the scopes of modules and classes after the run: a function knows its scope, and
        such circles, with all that the run has made, wait for Python's garbage collector."""
        for scope in self.namespaces.values():
            for value in scope.variables.values():
                if isinstance(value, Class):
                    value.namespace.clear()
            scope.variables.clear()

    # ------------------------------------------------------------------ where, and what happens

    def place(self, node: ast.AST) -> Location:
        function = self.functions[-1] if self.functions else ""
        return place_of(node, self.modules[-1].path, function)

    def emit(self, kind: type[Event], node: ast.AST | Location, **fields: Any) -> None:
        """Tell the rules."""
        self.serial += 1
        self.made += kind is Made
        self.history.hear(kind, fields)
        if kind is Backward:
            self.reach.train(self.guards)
        around = len(self.guards) + len(self.calls) + len(self.windows)
        # Rules look back over what happened before, and into what was made.
        self.spend(1 + (around >> 4) + (self.made >> 5) + (self.serial >> 6), node)
        self.watch(
            kind(
                place=node if isinstance(node, Location) else self.place(node),
                turns=tuple(self.turns),
                guards=frozenset(self.guards),
                stack=tuple(place for place, _ in self.calls),
                grad=self.grad[-1] is not False,
                autocast=self.autocast[-1],
                serial=self.serial,
                windows=tuple(self.windows),
                **fields,
            )
        )

    def number(self, value: object) -> int:
        """A private number for a value, by the order in which they were asked for."""
        found = self.numbers.get(id(value))
        if found is None:
            found = self.numbers[id(value)] = (value, len(self.numbers))
        return found[1]

    def result_used(self, node: ast.AST) -> bool:
        return id(node) not in self.bare

    @property
    def recording(self) -> bool:
        """Autograd records here."""
        return self.grad[-1] is not False

    @contextmanager
    def elsewhere(self, module: Module) -> Iterator[None]:
        """Go through the top level of a different module, without the conditions that hold here."""
        kept = (self.turns, self.turn_starts, self.guards, self.grad, self.autocast, self.calls)
        self.turns, self.turn_starts, self.guards, self.calls = [], [], [], []
        self.grad, self.autocast = [True], [None]
        inside, self.inside_models = self.inside_models, 0
        self.modules.append(module)
        self.functions.append("")
        try:
            yield
        finally:
            self.functions.pop()
            self.modules.pop()
            self.inside_models = inside
            self.turns, self.turn_starts, self.guards, self.grad, self.autocast, self.calls = kept

    # ------------------------------------------------------------------ values

    def unknown(self, node: ast.AST, of: Iterable[Value] = (), key: str = "") -> Unknown:
        """Something unknown that was computed here from other values."""
        parts = tuple(of)
        if not key:
            line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
            key = f"<{line}.{column}.{self.turns_begun if self.turns else 0}>"
        if not parts:
            return Unknown(key)
        loop_variant = any(map(loop_of, parts))
        return Unknown(key, (*parts, *tensors_behind(parts)), loop_variant=loop_variant)

    def key(self, value: object) -> str:
        """A text that is equal for equal values, as far as they are known."""
        if isinstance(value, Constant):
            return value.symbol or self.written(value.value)
        if isinstance(value, Unknown):
            return value.key
        if isinstance(value, LibraryMethod):
            return f"{self.key(value.receiver)}.{value.name}"
        name = getattr(value, "name", "") or getattr(value, "key", "")
        return name or f"<{type(value).__name__} {self.number(value)}>"

    def written(self, value: object) -> str:
        """A constant as it is written, cut where it is long."""
        if isinstance(value, (str, bytes)) and len(value) > KEY:
            self.steps += len(value) >> 8
        text = repr(value)
        return text if len(text) <= KEY else short_key(text)

    def size(self, value: object) -> Size:
        """A number as far as it is known; see `events.Size`."""
        if isinstance(value, Constant):
            number = value.value
            known = isinstance(number, (int, float)) and not isinstance(number, bool)
            return int(number) if known and math.isfinite(number) else None
        return value.key if isinstance(value, Unknown) else None

    def expose(self, values: Iterable[Value], callee: str, node: ast.AST) -> None:
        """Code that cannot be read gets the things in `values`."""
        things: list[Thing] = []
        for value in values:
            for each in inside(value, parts_of, 4) if parts_of(value) else (value,):
                self.looks += 1
                if not self.looks & 7:
                    self.spend(1, node)
                if isinstance(each, Tensor):
                    if each.graph is not False and each.models:
                        self.graph_escapes(callee, node, each.models)
                elif isinstance(each, Thing):
                    things.append(each)
                elif isinstance(each, Class):
                    self.reach.given_away.add(id(each.node))
        if not things:
            return
        for thing in things:
            thing.exposed = True
        self.emit(EscapedToUnknown, node, things=things, callee=callee)

    def graph_escapes(
        self, callee: str, node: ast.AST, models: frozenset[Model] = frozenset()
    ) -> None:
        """Code that cannot be read may run a backward. The layers of a `forward` do not, nor do
        methods of tensors."""
        if self.inside_models or callee.rpartition(".")[2] in KEEPS_GRAPH:
            return
        loop = id(self.turns[-1].loop) if self.turns else 0
        key = (callee, models, loop)
        if key not in self.escaped:
            self.escaped.add(key)
            self.emit(GraphEscaped, node, callee=callee, models=models)

    # ------------------------------------------------------------------ conditions

    def verdict(self, value: Value) -> tuple[bool | None, str, bool]:
        """The truth of a value: known or None, and for None its key and whether it is negated."""
        if isinstance(value, Constant):
            return bool(value.value), "", False
        if isinstance(value, Sequence):
            return (None if value.open and not value.values else bool(value.values)), "", False
        if isinstance(value, DictValue):
            return (None if value.open else bool(value.entries)), "", False
        if isinstance(value, Unknown):
            key, negated = value.key, False
            while key.startswith("not "):
                key, negated = key[4:], not negated
            return None, key, negated
        if isinstance(value, Tensor):
            return None, f"<tensor {self.number(value)}>", False
        if isinstance(value, (Thing, Function, Class, Method, Instance, OpaqueObject)):
            return True, "", False
        if isinstance(value, LibraryName) and _TRUE.match(value.name):
            return True, "", False
        return None, self.key(value), False

    def decide(self, value: Value, preferred: bool | None = None) -> tuple[bool, str]:
        """Take a condition as true or false for the whole of this run.

        `preferred`: what to take it for if nothing else speaks for either. Returns the outcome and
        the guard that names it, empty if it was not open.
        """
        outcome, key, negated = self.verdict(value)
        if outcome is not None:
            return outcome, ""
        fact = self.decided.get(key)
        if fact is None:
            fact = self._known_of_window(key)
            if fact is not None:
                return fact != negated, ""
            joined = self.junctions.get(key)
            fact = joined.known(self.decided) if joined is not None else None
            if fact is not None:
                pass  # it follows from what its parts are
            elif self.policy.forces(key):
                fact = self.policy.forced[key]
            elif self._ruled_out(value):
                fact = False
            elif (named := self._named(value)) is not None:
                fact = named
            elif (known := limited(key, self.policy.forced, self.decided)) is not None:
                fact = known
            elif (default := self._default(value, key, preferred)) is not None:
                fact = default
            elif preferred is not None:
                fact = preferred != negated
            else:
                fact = self.policy.optional
            self.decided[key] = fact
            if varies(value):
                self.varying.add(key)
            note_limit(self.limits, key, fact)
            if joined is not None:
                joined.settle(fact, self.decided, self.policy.forced)
            equals = getattr(value, "equals", None)
            if fact and equals is not None:
                self.equal[equals[0]] = equals[1]
        return fact != negated, key if fact else f"not {key}"

    def _default(self, value: Value, key: str, preferred: bool | None) -> bool | None:
        """The truth of a condition by the defaults of options, where nothing else speaks for one
        outcome, or all options have their defaults."""
        if preferred is not None and not self.policy.given:
            return None
        files = [*self.modules[::-1], *(scope.module for scope in self.namespaces.values())]
        surveys = [module.survey for module in files]
        return decided_by_default(self.policy, surveys, value, key)

    def _ruled_out(self, value: Value) -> bool:
        """The run was asked to take the same quantity for a different constant, or has found it to
        be on a different side (`n > 1`, and now `n == 1`)."""
        equals = getattr(value, "equals", None)
        if equals is None:
            return False
        name, wanted = equals
        forced = self.policy.forced.items()
        if any(fact and key.startswith(f"{name} == ") for key, fact in forced):
            return True
        if not isinstance(wanted, (int, float)):
            return False
        return any(holds(wanted, limit) != fact for holds, limit, fact in self.limits.get(name, ()))

    def _named(self, value: Value) -> bool | None:
        """The truth of `args.loss == "mse"` after `LOSSES[args.loss]` in this run."""
        name, wanted = getattr(value, "equals", None) or ("", None)
        return self.named[name] == wanted if name in self.named else None

    def text_of(self, value: Unknown, default: str) -> str | None:
        """The text that an option is in this run: what the run was asked to take it for, or its
        default; None where only something that it is not is known."""
        key = value.key
        known: object = self.equal.get(key)
        if isinstance(known, str):
            return known
        if self.policy.forces_part(f"{key} == "):
            forced = {each for each, fact in self.policy.forced.items() if fact}
            texts = (text_in(each, f"{key} == ") for each in forced)
            text = next((each for each in texts if each is not None), None)
            is_other = self.policy.forced.get(f"{key} == {default!r}") is False
            return text if text is not None or is_other else default
        return self.named.setdefault(key, default)

    def window_of_one(self, size: str) -> bool:
        """A window has been taken for one turn long in this run (`if accumulate > 1` was not); from
        here on it is what the run says it is."""
        if self.is_one(size):
            return True
        self.windowed.add(size)
        return False

    def is_one(self, key: str) -> bool:
        """A number has been taken for one in this run."""
        return any(self.decided.get(f"{key} {sign}", n) is not n for sign, n in _SEVERAL.items())

    def _known_of_window(self, key: str) -> bool | None:
        """The truth of `accumulate > 1` where windows of several turns are under way."""
        for sign, several in _SEVERAL.items():
            if key.endswith(f" {sign}") and key.removesuffix(f" {sign}") in self.windowed:
                return several
        return None

    # ------------------------------------------------------------------ moving on

    # Expressions contain calls, calls run statements, statements contain expressions: each of these
    # files asks the machine for the layers above it, and `interpreter` has the files.

    @abstractmethod
    def evaluate(self, node: ast.expr, scope: Scope) -> Value:
        """The value of an expression."""

    @abstractmethod
    def run_block(self, body: list[ast.stmt], scope: Scope) -> ControlFlow | None:
        """Run statements; the signal if they were left early."""

    @abstractmethod
    def assign(self, target: ast.expr, value: Value, scope: Scope) -> None:
        """Assign to a name, an attribute, an entry or several of them."""

    @abstractmethod
    def bind(self, name: str, value: Value, scope: Scope) -> None:
        """Give a name of a scope its value."""

    @abstractmethod
    def call_value(
        self,
        function: Value | None,
        args: list[Value],
        kwargs: dict[str, Value] | None = None,
        node: ast.AST | None = None,
    ) -> Value:
        """Call any value."""

    @abstractmethod
    def enter(
        self,
        function: Function,
        args: list[Value],
        kwargs: dict[str, Value],
        node: ast.AST,
        on_yield: Callable[[Value], Value],
    ) -> None:
        """Run the body of a generator function of the user's."""

    @abstractmethod
    def attribute(self, value: Value, name: str, node: ast.AST) -> Value:
        """Read an attribute of any value."""
