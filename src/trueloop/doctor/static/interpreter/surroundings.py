"""The surroundings of the code that a run is in: loops, open conditions, and windows."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from trueloop.doctor.model.known_values import Value
from trueloop.doctor.model.things import AccumulationWindow, Loop, Turn
from trueloop.doctor.static.interpreter.step_budget import Counting


class Surroundings(Counting):
    """The part of a machine that knows what is around the current statement."""

    def __init__(self, budget: int) -> None:
        super().__init__(budget)
        self.turns: list[Turn] = []
        self.turn_starts: list[int] = []
        self.turns_begun = 0
        self.levels = 0
        """Of the loops inside the innermost turn: 1 over batches, 2 over epochs of batches."""
        self.unfinished = 0  # loops of which only some turns were gone through, so far
        self.guards: list[str] = []
        self.tries = 0
        """The `try` blocks around the current statement."""
        self.is_notebook = False
        self.returned: tuple[Value, ast.AST] | None = None
        """The value that was returned last, and by which function."""
        self.imported: set[str] = set()
        """The modules of the project whose own imports were looked at."""
        self.windows: list[AccumulationWindow] = []
        """The windows whose branches the run is in."""

    @property
    def must_succeed(self) -> bool:
        """Python ends the program where this statement fails. A notebook continues with its next
        cell."""
        return not (self.guards or self.tries or self.is_notebook)

    def batch_turn(self) -> int | None:
        """When the innermost turn of a loop over batches began, counted in turns; None outside."""
        for turn, start in zip(reversed(self.turns), reversed(self.turn_starts), strict=True):
            if turn.loop.kind == "batches":
                return start
        return None

    def predates_turn(self, made: int | None) -> bool:
        """Things made then are older than the current turn over batches."""
        start = self.batch_turn()
        return made is not None and start is not None and made < start

    def turn(self, loop: Loop, index: int) -> InTurn:
        """A turn of a loop, as a context."""
        return InTurn(self, Turn(loop, index))

    def guarded(
        self, guards: Iterable[str], windows: Iterable[AccumulationWindow] = ()
    ) -> UnderConditions:
        """Open conditions and windows, as a context."""
        return UnderConditions(self, guards, windows)


class InTurn:
    """The inside of a `with m.turn(loop, index)`."""

    __slots__ = ("machine", "turn")

    def __init__(self, machine: Surroundings, turn: Turn) -> None:
        self.machine, self.turn = machine, turn

    def __enter__(self) -> None:
        m = self.machine
        m.turns_begun += 1
        m.turns.append(self.turn)
        m.turn_starts.append(m.turns_begun)

    def __exit__(self, *raised: object) -> None:
        self.machine.turns.pop()
        self.machine.turn_starts.pop()


class UnderConditions:
    """The inside of a `with m.guarded(guards, windows)`."""

    __slots__ = ("before", "guards", "machine", "windows")

    def __init__(
        self, machine: Surroundings, guards: Iterable[str], windows: Iterable[AccumulationWindow]
    ) -> None:
        self.machine, self.guards, self.windows = machine, guards, windows
        self.before = len(machine.guards), len(machine.windows)

    def __enter__(self) -> None:
        self.machine.guards.extend(self.guards)
        self.machine.windows.extend(self.windows)

    def __exit__(self, *raised: object) -> None:
        del self.machine.guards[self.before[0] :], self.machine.windows[self.before[1] :]
