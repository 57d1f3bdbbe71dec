"""The same seed is set repeatedly inside the training loop.

## What it does

Finds `torch.manual_seed(0)`, or a helper that calls it, in every epoch or for every batch with the
same number.

## Why it breaks training

Each iteration draws the same random numbers: the same order of the data, dropout masks, noise,
augmentation and negatives. An epoch repeats the previous one. The loss falls, often faster than it
should; the model sees a fraction of the intended variety, and a stochastic estimate (diffusion,
VAE, reinforcement learning) becomes a fixed, wrong one.

## Wrong

```python
for epoch in range(epochs):
    torch.manual_seed(42)
    train_one_epoch(model, loader)
```

## Right

```python
torch.manual_seed(42)
for epoch in range(epochs):
    train_one_epoch(model, loader)
```

To repeat some draws in each epoch: `with torch.random.fork_rng(): torch.manual_seed(42); ...`.

## Sources

- PyTorch, `torch.random.fork_rng`: https://docs.pytorch.org/docs/stable/random.html
- PyTorch, "Reproducibility": https://docs.pytorch.org/docs/stable/notes/randomness.html

## How it is detected

In two iterations of one loop the same constant goes to torch's global generator (or numpy's or
`random`'s, if the loop draws from it), and an optimizer created before the loop steps in it, or
parameters are updated by hand in each batch. Not reported: seeds that change with the loop, seeds
inside `fork_rng` or a closure, a restored state, and loops over trials, folds or variants, each of
which creates its own optimizer, which steps in one turn of the loop, or counts its own epochs from
the start.
"""

from __future__ import annotations

from collections.abc import Sequence

from trueloop.doctor.model.events import (
    Backward,
    Event,
    Made,
    ManualUpdate,
    OptimizerStep,
    Seeded,
    Used,
)
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.known_values import Constant, OpaqueObject, Unknown
from trueloop.doctor.model.things import Loop, Optimizer, Turn
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import where_seeded


class ReseedsInLoop(Rule):
    code = "TL712"

    def __init__(self) -> None:
        super().__init__()
        self._born: dict[Optimizer, frozenset[Loop]] = {}
        """The loops that an optimizer was made in."""
        self._stepped: dict[tuple[Optimizer, Loop], set[int]] = {}
        """The turns of a loop in which an optimizer steps."""
        self._seeded: dict[tuple[Loop, Location], dict[int, str]] = {}
        """Loop and line -> the turns of the loop that set the seed there, and to what."""
        self._latest: list[tuple[Turn, Location]] = []
        """The turns of the latest seed, until a step has drawn from it."""
        self._fed: Turn | None = None
        """The turn of the latest backward."""

    def on_made(self, event: Made) -> None:
        if isinstance(event.thing, Optimizer):
            self._born[event.thing] = frozenset(turn.loop for turn in event.turns)

    def on_seeded(self, event: Seeded) -> None:
        if event.library not in ("torch", "all"):
            return
        if event.value is None and event.depends:
            self._put_back()  # `torch.seed()`: to something new
        if event.depends is not False or event.forked:
            return
        if event.windows or any(" % " in each for each in event.guards):
            return
        place = where_seeded(event)
        self._latest = [(turn, place) for turn in event.turns]
        for turn in event.turns:
            turns = self._seeded.setdefault((turn.loop, place), {})
            turns[turn.index] = _text(event.value)

    def on_used(self, event: Used) -> None:
        if event.what.endswith("set_rng_state"):
            self._put_back()

    def _put_back(self) -> None:
        for turn, place in self._latest:
            self._seeded.get((turn.loop, place), {}).pop(turn.index, None)

    def on_backward(self, event: Backward) -> None:
        self._fed = event.turn

    def on_manual_update(self, event: ManualUpdate) -> None:
        """A step without an optimizer, or in a class of the user's, which each turn may make."""
        of_class = event.place.function.endswith(".step")
        if event.turn is not None and event.turn == self._fed and not of_class:
            self._check(event, [event.turn.loop])

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        for turn, place in self._latest:
            if event.closure and place.function != event.place.function:
                # Set in the closure, which one step calls several times, on the same samples.
                self._seeded.pop((turn.loop, place), None)
        self._latest = []
        born = self._born.get(event.optimizer, frozenset())
        for turn in event.turns:
            self._stepped.setdefault((event.optimizer, turn.loop), set()).add(turn.index)
        # One that each turn makes for itself, unseen, belongs to that turn's trial.
        own = [
            turn.loop
            for turn in event.turns
            if turn.loop not in born and len(self._stepped[event.optimizer, turn.loop]) > 1
        ]
        self._check(event, own)

    def _check(self, event: Event, inside: list[Loop]) -> None:
        for (loop, place), turns in self._seeded.items():
            repeats = len(turns) > len(set(turns.values()))
            if loop in inside and repeats and loop.kind in ("epochs", "batches"):
                if _is_over_trainings(loop, event.turns):
                    continue
                stepped = [len(made) for (_, each), made in self._stepped.items() if each is loop]
                if 2 * len(turns) < max(stepped, default=0):
                    continue  # before a picture now and then
                again = "batch" if loop.kind == "batches" else "epoch"
                self.report(
                    place,
                    f"The same seed is set in every {again}: each one repeats the same"
                    " random numbers, so the same sample order, dropout masks and noise.",
                    fix="Set the seed once, before the loop. If some draws must repeat, use"
                    " `torch.random.fork_rng()` or a separate generator for them.",
                    related=[(loop.place, "the loop"), (event.place, "the update")],
                )


def _is_over_trainings(loop: Loop, turns: Sequence[Turn]) -> bool:
    """It goes through models or tasks, and each of them is trained from the first epoch on."""
    loops = [turn.loop for turn in turns]
    within = loops[loops.index(loop) + 1 :]
    return not loop.counted and any(each.kind == "epochs" and each.counted for each in within)


def _text(seed: object) -> str:
    """Equal for equal seeds."""
    if isinstance(seed, (Unknown, OpaqueObject)) and seed.key:
        return seed.key
    return str(seed.value if isinstance(seed, Constant) else seed)
