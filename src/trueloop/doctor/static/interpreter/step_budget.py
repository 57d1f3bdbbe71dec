"""The cost of a run of the machine: a count of steps, and of levels of nesting.

Steps replace time, but are not measured in it: the same text costs the same on every machine, busy
or not, and so gives the same findings. Each statement, expression, call and event is one step;
whatever takes longer the more there is of it (a list of names, a text, a container) counts for its
size.
"""

from __future__ import annotations

import ast

from trueloop.doctor.model.findings import Location

STEPS_A_FILE = 1_000_000
"""Steps that all runs of a file may take together."""
NESTING = 400
"""Levels of nesting, of expressions, statements and calls together, that are gone into."""
TOO_DEEP = f"code nested deeper than {NESTING} levels"


class ProgramFailsError(Exception):
    """Python refuses a call or an import, whatever the options are: the program ends. Its arguments
    are the place, and the reason in a few words."""


class OutOfBudgetError(Exception):
    """The run has taken more steps than it may."""


class Counting:
    """The part of a machine that counts."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.steps = 0
        """The cost of the run so far."""
        self.looks = 0
        """Parts of values that were looked at, eight to a step."""
        self.made = 0
        """How many things were made: rules ask what is inside which."""
        self.nesting = 0
        self.registered: dict[int, int] = {}
        """Decorators by the identity of their node -> how many functions they gave back as they
        were; -1 for one that has changed a function."""
        self.calls: list[tuple[Location, ast.AST]] = []
        """The calls of the user's functions that the run is in, outermost first."""
        self.stopped: Location | None = None
        """Where the steps ran out."""
        self.stopped_within: tuple[Location, ...] = ()
        """The calls that led there."""
        self.left_out: dict[str, Location] = {}
        """The functions that were not entered, by description, with the first place of each."""

    def place(self, node: ast.AST) -> Location:
        """Where a node of the current file is."""
        raise NotImplementedError

    def spend(self, steps: int, node: ast.AST | Location) -> None:
        """Count what something costs. Raises `OutOfBudgetError`."""
        self.steps += steps
        if self.steps > self.budget:
            self.stopped = node if isinstance(node, Location) else self.place(node)
            self.stopped_within = tuple(place for place, _ in self.calls)
            raise OutOfBudgetError

    def look(self, node: ast.AST) -> None:
        """Count that a part of a value is looked at."""
        self.looks += 1
        if not self.looks & 7:
            self.spend(1, node)

    def is_too_deep(self, node: ast.AST) -> bool:
        """There are too many levels around: what comes next is not gone into."""
        if self.nesting <= NESTING:
            return False
        self.left_out.setdefault(TOO_DEEP, self.place(node))
        return True

    def nested(self, node: ast.AST) -> OneLevel:
        """One level further in; whether that may be gone into."""
        return OneLevel(self, node)


class OneLevel:
    """The inside of a `with m.nested(node)`."""

    __slots__ = ("machine", "node")

    def __init__(self, machine: Counting, node: ast.AST) -> None:
        self.machine, self.node = machine, node

    def __enter__(self) -> bool:
        self.machine.nesting += 1
        return not self.machine.is_too_deep(self.node)

    def __exit__(self, *raised: object) -> None:
        self.machine.nesting -= 1
