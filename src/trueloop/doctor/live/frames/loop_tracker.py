"""Which loops of the program are running, and in which turn: read from where its frames are.

Python does not say that a loop has come around. The watcher sees where the program is at each
event, and nothing more. A loop has turned if its frame is further up than before, or again where it
was for the same kind of event; the loop over a `DataLoader` turns when it fetches.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from types import CodeType

from trueloop.doctor.live.frames import source_map
from trueloop.doctor.live.frames.user_frames import Site, place_at
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.nodes import calls_its_elements, cut_at
from trueloop.doctor.model.things import Loader, Loop, Turn


@dataclass(eq=False)
class RunningLoop:
    """A loop that is running."""

    loop: Loop
    node: source_map.LoopNode | CodeType
    depth: int
    """Of its frame, from the outermost."""
    index: int = 0
    driver: int | None = None
    """`id` of the iterator of the `DataLoader` whose fetches are its turns."""


@dataclass
class LoopChanges:
    """The loops that an event's place shows: those left, and those entered, in this order."""

    left: list[Loop] = field(default_factory=list)
    entered: list[Loop] = field(default_factory=list)
    turned: bool = False
    """A loop over batches has come around, or a loop was entered or left."""


class ThreadLoops:
    """The loops of one thread of the program."""

    def __init__(self) -> None:
        self.open: list[RunningLoop] = []
        self._last: list[Site] = []
        self._seen: set[tuple[str, int, int]] = set()
        """Kinds of events, with where, in the innermost turn."""

    def now(self) -> tuple[Turn, ...]:
        return tuple([Turn(each.loop, each.index) for each in self.open])

    def move(self, here: list[Site], kind: str) -> LoopChanges:
        """Take notice that an event of some kind happens where the program is now."""
        moves = LoopChanges()
        level, repeated = self._compare(here, kind)
        if level is not None or repeated:
            self._leave(here, level, repeated, moves)
        self._enter(here, moves)
        if moves.left or moves.entered or moves.turned:
            self._seen.clear()
        if here:
            self._seen.add((kind, here[-1].frame, here[-1].offset))
        self._last = here
        return moves

    def fetched(
        self, here: list[Site], iterator: int, loader: Loader
    ) -> tuple[LoopChanges, Loop | None]:
        """A `DataLoader` gives a batch: the loop whose header asks for it takes a turn."""
        moves = LoopChanges()
        found = self._header(here)
        if found is None:
            moves = self.move(here, "BatchFetched")
            return moves, self.open[-1].loop if self.open else None
        depth, node = found
        place = here[depth]
        for position, each in enumerate(self.open):
            if each.loop.exhausted:
                continue  # the data are iterated again
            if each.depth == depth and each.node is node and self._same_frame(here, depth):
                self._close(position + 1, moves)
                if each.driver in (None, iterator):
                    fresh = each.driver is None and each.index == 0
                    each.driver = iterator
                    if not fresh:
                        each.index += 1
                    moves.turned = True
                self._settle(here)
                return moves, each.loop
        level, repeated = self._compare(here, "BatchFetched")
        if level is not None or repeated:
            self._leave(here, level, repeated, moves)
        outer = [
            each
            for each in self.open
            if each.depth < depth or (each.node is not node and self._around(each, place))
        ]
        self._close(len(outer), moves)
        self._enter(here, moves)
        if isinstance(node, CodeType) and self.open[-1].node is node:
            loop = self.open[-1].loop  # all of a comprehension is inside of its loop
        else:
            loop = self._begin(node, depth, place, moves)
        loop.kind, loop.loader, loop.turns = "batches", loader, loader.length
        self.open[-1].driver = iterator
        self._outer_are_epochs()
        self._settle(here)
        return moves, loop

    def _settle(self, here: list[Site]) -> None:
        self._last = here
        self._seen.clear()

    def works(self, kind: str, *, trains: bool) -> None:
        """A model is called or trained here: the innermost loop is one over batches, unless one
        around it is.

        A loop that only steps goes over optimizers: its batch came from outside. One that calls
        what it goes over does not go over batches, and one over epochs still does so where what it
        contains besides only evaluates.
        """
        steps = kind == "OptimizerStep"
        batches = [each for each in self.open if each.loop.kind == "batches"]
        if any(steps or each.driver is not None for each in batches):
            return
        inner = [each for each in self.open if not calls_its_elements(each.node)]
        settled = ("batches",) if trains else ("batches", "epochs")
        if inner and inner[-1].loop.kind not in settled:
            inner[-1].loop.kind = "batches"
            self._outer_are_epochs(inner[-1])

    def _outer_are_epochs(self, innermost: RunningLoop | None = None) -> None:
        for each in self.open[: -1 if innermost is None else self.open.index(innermost)]:
            each.loop.kind = "epochs"

    # ------------------------------------------------------------------ comparing places

    def _same_frame(self, here: list[Site], depth: int) -> bool:
        if depth >= len(self._last):
            return False
        before = self._last[: depth + 1]
        return all(
            mine.code is yours.code and mine.frame == yours.frame
            for mine, yours in zip(here, before, strict=False)
        )

    def _compare(self, here: list[Site], kind: str) -> tuple[int | None, bool]:
        """The depth of the first frame that is elsewhere than before, and whether the program
        is where it was for an event of this kind already."""
        for depth, (mine, yours) in enumerate(zip(here, self._last, strict=False)):
            if mine.code is not yours.code or mine.frame != yours.frame:
                return depth, False
            if mine.offset != yours.offset:
                return depth, False
        if len(here) != len(self._last):
            return min(len(here), len(self._last)), False
        again = bool(here) and (kind, here[-1].frame, here[-1].offset) in self._seen
        return None, again

    def _leave(
        self, here: list[Site], level: int | None, repeated: bool, moves: LoopChanges
    ) -> None:
        """Close the loops that the program has left, and turn the one that has come around."""
        if level is None:
            self._turn(len(self.open), moves)
            return
        keep = 0
        while keep < len(self.open) and self._still(self.open[keep], here, level):
            keep += 1
        closes = keep < len(self.open)
        self._close(keep, moves)
        if self._came_around(here, level, closes):
            self._turn(keep, moves)

    def _still(self, each: RunningLoop, here: list[Site], level: int) -> bool:
        if each.depth < level:
            return True
        return each.depth == level and level < len(here) and self._around(each, here[level])

    def _around(self, each: RunningLoop, site: Site) -> bool:
        """A loop of this frame's code is around where it is."""
        same = each.depth < len(self._last) and self._last[each.depth].frame == site.frame
        return same and each.node in source_map.loops_of(site.code, site.line)

    def _came_around(self, here: list[Site], level: int, closes: bool) -> bool:
        """The program is further up than before, in the innermost frame that has moved."""
        if level >= len(here) or level >= len(self._last):
            return False
        mine, yours = here[level], self._last[level]
        if mine.code is yours.code and mine.frame == yours.frame:
            return mine.offset < yours.offset
        # The caller is where it was and calls again.
        return mine.code is yours.code and mine.offset <= yours.offset

    def _turn(self, keep: int, moves: LoopChanges) -> None:
        if keep and self.open[keep - 1].driver is None:
            self.open[keep - 1].index += 1
            moves.turned = True

    # ------------------------------------------------------------------ entering and leaving

    def _close(self, keep: int, moves: LoopChanges) -> None:
        while len(self.open) > keep:
            moves.left.append(self.open.pop().loop)

    def _enter(self, here: list[Site], moves: LoopChanges) -> None:
        for depth, place in enumerate(here):
            running = [each.node for each in self.open if each.depth == depth]
            for node in source_map.loops_of(place.code, place.line):
                if node not in running:
                    self._begin(node, depth, place, moves)

    def _begin(
        self, node: source_map.LoopNode | CodeType, depth: int, site: Site, moves: LoopChanges
    ) -> Loop:
        whole = place_at(site.code, site.offset, site.line)
        if not isinstance(node, CodeType):
            end = node.end_lineno or node.lineno
            whole = Location(whole.path, node.lineno, node.col_offset + 1, end, 0, whole.function)
        loop = Loop(
            place=whole,
            variables=source_map.variables(node),
            leaves=source_map.leaves(node),
            cut_at=None if isinstance(node, CodeType) else cut_at(node),
        )
        self.open.append(RunningLoop(loop, node, depth))
        self.open.sort(key=lambda each: each.depth)
        moves.entered.append(loop)
        return loop

    def _header(self, here: list[Site]) -> tuple[int, source_map.LoopNode | CodeType] | None:
        """The outermost frame that is at the head of a `for` and does not belong to a generator; a
        generator that uses up the batches itself (`for epoch, loss in fit(loader):`); or a
        comprehension that asks for the batch itself."""
        found: tuple[int, source_map.LoopNode | CodeType] | None = None
        for depth, each in enumerate(here):
            if each is here[-1] and each.code.co_name in source_map.COMPREHENSIONS:
                return found or (depth, each.code)
            place = place_at(each.code, each.offset, each.line)
            node = source_map.source_of(each.code.co_filename).header_at(place)
            if each.code.co_flags & inspect.CO_GENERATOR and depth:
                if node is not None and source_map.uses_up(node):
                    return depth, node
                if found is None:
                    return None
            elif found is None and node is not None:
                found = depth, node
        return found
