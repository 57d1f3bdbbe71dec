"""Where a feed is, and the state that a loader or a stream has there."""

from __future__ import annotations

import random
import time
import warnings
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from trueloop import seed as seeds
from trueloop.errors import RunError
from trueloop.shapes import Anything, ListOf, OneOf, Shape

_LEAVES = (str, bytes, int, float, complex, bool, type(None))
_END = object()
_BITS = 2000  # a reader that runs no code takes no longer integer


class OwnState:
    """The `state_dict` of a loader or an iterable data set, asked for after each batch.

    The batch is perhaps handed out, and the run saved, when others have been fetched after it: the
    state is taken when it is fetched, as a copy, and waits with it (`Cursor`).
    """

    def __init__(self, owner: Any, why: str | None = None) -> None:
        """`why` says why it cannot be asked; None to ask it if it has both methods."""
        self._owner = owner
        self._name = type(owner).__name__
        self.why = why
        """Why no state is available, and the way to a place is a replay; None if one is."""
        self.is_refused = False
        """The owner has a state, and it cannot be stored."""
        for method in ("state_dict", "load_state_dict"):
            if self.why is None and not callable(getattr(owner, method, None)):
                self.why = f"{self._name} has no {method}"

    def take(self) -> Any:
        """A copy of the state as it is now, plain data and tensors; None if there is none."""
        if self.why is not None:
            return None
        try:
            return plain(self._owner.state_dict())
        except _NotPlainError as error:
            self.why = (
                f"{self._name}.state_dict() contains {error}, which a checkpoint cannot store"
            )
        except Exception as error:  # the user's code; said when a state is asked for
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            self.why = f"{self._name}.state_dict() raised {reason[:120]}"
        self.is_refused = True
        return None

    def give(self, state: Any) -> None:
        """Let the owner load `state`; `RunError` if it does not."""
        try:
            self._owner.load_state_dict(plain(state))
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise RunError(
                f"{self._name}.load_state_dict does not take the state that its state_dict gave "
                f"({reason[:120]}): build it as in the saved run, or fix the two methods"
            ) from error


class _NotPlainError(TypeError):
    """Says what is not plain, and where."""


def plain(value: Any, where: str = "") -> Any:
    """A copy of nested dicts, lists, tuples and sets of numbers, text, bytes, None and tensors.

    Raises `TypeError` for anything else: reading it back would take running code.
    """
    kind = type(value)
    if kind in _LEAVES and not (kind is int and value.bit_length() > _BITS):
        return value
    if kind is Tensor:
        return value.detach().clone()
    if kind in (dict, OrderedDict):
        return {plain(key, where): plain(part, f"{where}[{key!r}]") for key, part in value.items()}
    if kind in (list, tuple):
        return kind(plain(part, f"{where}[{k}]") for k, part in enumerate(value))
    if kind is set and all(type(part) in _LEAVES for part in value):
        return set(value)
    name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    raise _NotPlainError(f"a {name}" + (f" at {where}" if where else ""))


class Generators:
    """The CPU generators of torch, numpy and `random` at one moment, in some microseconds."""

    def __init__(self) -> None:
        self._torch = torch.get_rng_state()
        self._numpy = np.random.get_state()
        self._random = random.getstate()

    def plain(self) -> dict[str, Any]:
        """As plain data and tensors, for `set_generators`."""
        with seeds.rng_preserved():
            torch.set_rng_state(self._torch)
            np.random.set_state(self._numpy)
            random.setstate(self._random)
            return {name: part for name, part in seeds.rng_state().items() if name != "cuda"}


def set_generators(state: Mapping[str, Any]) -> None:
    """Put the CPU generators where `state` has them; no loader draws from an accelerator's."""
    seeds.set_rng_state({name: part for name, part in state.items() if name != "cuda"})


class Cursor:
    """Where an epoch's iterator is, and what is known of that place beside its numbers.

    The source reports what it fetches, the iterator what it hands out; between the two, batches
    wait, each with the source's own state just after it was fetched.
    """

    STATE: ClassVar[Shape] = {
        "over": bool,
        "own": Anything,
        "ahead": ListOf(seeds.CPU_STATE),
        "why": OneOf(None, str),
    }
    """The form of the state that `loaded` takes, without the place's numbers."""

    def __init__(self, epoch: int, batch: int) -> None:
        self.epoch = epoch
        self.batch = batch
        self.over = False
        """No batch follows in this epoch; the next one may already be asked for."""
        self.own: Any = None
        """The source's own state here."""
        self.resumed = False
        """The place was loaded, and the source has not been brought there yet."""
        self.why: str | None = None
        """Why the state that was loaded has none of the source's own."""
        self.ahead: list[dict[str, Any]] = []
        """The generators just before each batch that had been fetched beyond this place."""
        self.stand_in = False
        """The batch handed out last is a stand-in."""
        self.waiting: deque[tuple[Any, Generators | None, bool]] = deque()
        """State that belongs to the batches that have been fetched and not handed out."""
        self.has_moved = False
        self._end: Any = None

    @classmethod
    def loaded(cls, epoch: int, batch: int, state: Mapping[str, Any]) -> Cursor:
        """The place that a feed's state describes."""
        place = cls(epoch, batch)
        place.resumed = True
        place.over, place.own = state.get("over", False), state.get("own")
        place.why, place.ahead = state.get("why"), list(state.get("ahead", ()))
        return place

    def begin(self, epoch: int, batch: int) -> Cursor:
        """The place of a new iterator: what is known here goes with it, if it begins here."""
        place = Cursor(epoch, batch)
        if (epoch, batch) == (self.epoch, self.batch):
            place.over, place.own, place.why = self.over, self.own, self.why
            place.resumed, place.ahead = self.resumed, self._ahead()
        return place

    def state(self) -> dict[str, Any]:
        """For `loaded`: plain data and tensors."""
        return {"over": self.over, "own": self.own, "ahead": self._ahead()}

    def _ahead(self) -> list[dict[str, Any]]:
        if not self.has_moved:
            return self.ahead
        return [before.plain() for _, before, _ in self.waiting if before is not None]

    def fetched(
        self, own: Any, before: Generators | None = None, *, stand_in: bool = False
    ) -> None:
        """A batch has left the source, with its `own` state, the generators as they were before."""
        self.waiting.append((own, before, stand_in))

    def ended(self, own: Any) -> None:
        """The source's epoch has ended, with its `own` state."""
        self._end = own

    def handed_out(self, *, last: bool) -> None:
        """A batch of a source that has a state is out, as far as known the `last`."""
        if self.waiting:
            self.own, _, self.stand_in = self.waiting.popleft()
        if last:
            self.own = self._end  # samples may follow that make no batch

    def finished(self) -> None:
        """The epoch's iterator is exhausted: the next epoch comes."""
        self.epoch, self.batch, self.over = self.epoch + 1, 0, False
        self.own = self._end


def tracked(batches: Iterable[tuple[Any, bool]], own: OwnState, place: Cursor) -> Iterator[Any]:
    """The batches of (batch, whether it is a stand-in), each reported to `place` with the source's
    own state."""
    for batch, stand_in in batches:
        place.fetched(own.take(), stand_in=stand_in)
        yield batch
    place.ended(own.take())


def timed(batches: Iterator[Any], place: Cursor, own: OwnState) -> Iterator[Any]:
    """`batches`, the first of which takes a replay: warns of the time that it took."""
    count, started = place.batch, time.perf_counter()
    first = next(batches, _END)
    seconds = time.perf_counter() - started
    why = own.why or place.why or "the checkpoint contains no state of it"
    warnings.warn(
        f"replayed {count:,} batch{'' if count == 1 else 'es'} to reach the saved position "
        f"({why}): {seconds:.1f} s",
        RuntimeWarning,
        stacklevel=2,
    )
    if first is not _END:
        yield first
        yield from batches
