"""The optimizer is created again in every epoch or batch, and loses its state.

## What it does

Finds an optimizer with a state that is created repeatedly for the same model within one training
run.

## Why it breaks training

Momentum, Adam's moments and the step counts are stored in the optimizer. A new one starts without
them: Adam created per batch takes steps of the full learning rate in the direction of each
gradient's sign, and momentum created per batch is plain SGD. Created per epoch, each epoch starts
with a bad warm-up and a jump in the loss. A schedule tied to the old optimizer has no effect.
Nothing raises; training is noisier and slower.

## Wrong

```python
for epoch in range(epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for inputs, targets in loader:
        ...
```

## Right

```python
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(epochs):
    for inputs, targets in loader:
        ...
```

## Sources

- PyTorch, [torch.optim](https://docs.pytorch.org/docs/stable/optim.html): an optimizer "will hold
  the current state and will update the parameters based on the computed gradients"
- Kingma and Ba, [Adam](https://arxiv.org/abs/1412.6980), 2015, section 3: the bias correction of
  the first steps

## How it is detected

In every iteration of one loop, unconditionally, an optimizer with a state is created at the same
line from the same model and steps in the batches of that iteration; the loop runs over epochs of
one loader, or of rows of the same tensors, or over batches. Not reported: folds, trials, tasks,
clients, stages and rounds (a different model or loader, an inner loop over epochs, or a loop with
such a name), weights that are restored or copied, layers that are frozen or unfrozen in between, an
optimizer whose state is loaded, plain SGD (it has no state), and optimizers of other tensors than a
model's (attacks, inner loops).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from trueloop.doctor.model.events import (
    BatchFetched,
    Event,
    FlagsSet,
    LoopEntered,
    Made,
    ManualUpdate,
    ModelForward,
    OptimizerStep,
    Replaced,
    StateDictLoaded,
)
from trueloop.doctor.model.known_values import contents
from trueloop.doctor.model.things import Loop, Model, Optimizer, Tensor, Turn
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.passes import words

_FRESH_STARTS = frozenset(
    "fold folds trial trials task tasks client clients user users round rounds stage stages phase"
    " phases seed seeds run runs exp experiment experiments config configs cfg lr lrs model models"
    " domain domains site sites subject subjects dataset datasets split splits repeat repeats"
    " repetition meta episode episodes outer inner member members session sessions level growth"
    " player players agent agents adapt attack local federated search sweep cycle"
    " spec specs concept concepts skill skills scenario scenarios".split()
)

_OF_ONE_TRAINING = frozenset(
    "run runs exp experiment experiments config configs cfg lr lrs model models".split()
)
"""In a loop that is named for epochs, these name what goes through the epochs (`train_model`,
`Experiment.run`) or what says how many they are (`config.epochs`)."""


@dataclass(eq=False)
class Build:
    """One making of an optimizer, and its steps."""

    event: Made
    optimizer: Optimizer
    steps: list[OptimizerStep] = field(default_factory=list)
    rows_of: frozenset[Tensor] = frozenset()
    """The data whose rows the batch of its first step has, as far as known."""

    @property
    def turn(self) -> Turn:
        return self.event.turns[-1]


class OptimizerRebuiltInLoop(Rule):
    code = "TL305"

    def __init__(self) -> None:
        super().__init__()
        self.builds: dict[Optimizer, Build] = {}
        self.reset: list[tuple[int, Model | None]] = []
        self.reported: set[Loop] = set()
        self.guards: dict[Loop, frozenset[str]] = {}
        """The events that the whole loop depends on."""
        self.rows_of: dict[Loop, frozenset[Tensor]] = {}
        """The data whose rows loops over batches by hand give to a model."""

    def on_loop_entered(self, event: LoopEntered) -> None:
        self.guards[event.loop] = event.guards

    def on_made(self, event: Made) -> None:
        made = event.thing
        if not isinstance(made, Optimizer) or not event.turns or not _has_state(made):
            return
        if event.guards <= self.guards.get(event.turns[-1].loop, frozenset()):
            self.builds[made] = Build(event, made)

    def on_batch_fetched(self, event: BatchFetched) -> None:
        if self.builds and event.loader is None:
            self.rows_of[event.loop] = _rows_of(event.batch, *contents(event.batch))

    def on_model_forward(self, event: ModelForward) -> None:
        turn = event.turn
        if self.builds and turn is not None and turn.loop.loader is None and event.grad:
            self.rows_of[turn.loop] = self.rows_of.get(turn.loop) or _rows_of(*event.inputs)

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        build = self.builds.get(event.optimizer)
        if build is None:
            return
        build.steps.append(event)
        if len(build.steps) == 1:
            if event.turn is not None:
                build.rows_of = self.rows_of.get(event.turn.loop, frozenset())
            self._check(build)

    def on_state_dict_loaded(self, event: StateDictLoaded) -> None:
        if isinstance(event.thing, Optimizer):
            self.builds.pop(event.thing, None)
        elif isinstance(event.thing, Model):
            self.reset.append((event.serial, event.thing))

    def on_flags_set(self, event: FlagsSet) -> None:
        self.reset.append((event.serial, event.model))

    def on_replaced(self, event: Replaced) -> None:
        self.reset.append((event.serial, event.model))

    def on_manual_update(self, event: ManualUpdate) -> None:
        for model in event.models or (None,):
            self.reset.append((event.serial, model))

    def _check(self, build: Build) -> None:
        loop = build.turn.loop
        builds = [
            each
            for each in self.builds.values()
            if each.event.place[:3] == build.event.place[:3] and each.event.turns[-1].loop is loop
        ]
        turns = {each.turn.index for each in builds}
        if len(builds) < 2 or turns != set(range(build.turn.index + 1)):
            return
        first = builds[0]
        if all(self._is_rebuilt(first, each) for each in builds[1:]):
            self._report(build, loop)

    def _is_rebuilt(self, first: Build, later: Build) -> bool:
        """The same model is trained on in the same run of training."""
        if not first.steps or not later.steps or not first.optimizer.models:
            return False
        if set(first.optimizer.models) != set(later.optimizer.models):
            return False
        if first.event.turns[:-1] != later.event.turns[:-1]:
            return False
        models = first.optimizer.models
        for serial, model in self.reset:
            between = first.event.serial < serial < later.event.serial
            if between and (model is None or any(model.shares_parameters(each) for each in models)):
                return False
        return _steps_in(first) is not None and _steps_in(first) == _steps_in(later)

    def _report(self, build: Build, loop: Loop) -> None:
        if _starts_afresh(build.event, loop):
            return
        name = f"`{build.optimizer.name}`" if build.optimizer.name else "The optimizer"
        often = "for every batch" if loop.kind == "batches" else "in every epoch"
        kind = build.optimizer.kind.rpartition(".")[2] or "optimizer"
        self.report(
            build.event.place,
            f"{name} is created again {often}: its state ({kind}'s moments, momentum, step"
            " counts) is lost each time.",
            fix="Create it once, before the loop.",
            related=[(loop.place, "the loop that creates it again")],
        )


def _has_state(optimizer: Optimizer) -> bool:
    if not optimizer.known or not optimizer.complete:
        return False
    # `[p for p in model.parameters() if p.ndim > 1]` are tensors of the model.
    if any(not each.models or each.models - {*optimizer.models} for each in optimizer.tensors):
        return False
    if optimizer.kind.rpartition(".")[2] == "SGD":
        return optimizer.arguments.get("momentum", 0) not in (0, 0.0)
    return bool(optimizer.kind)


def _steps_in(build: Build) -> tuple[object, ...] | None:
    """Where it steps, below the turn it was made in: straight in it, or in a loop over batches."""
    step, depth = build.steps[0], len(build.event.turns)
    if step.turns[:depth] != build.event.turns:
        return None
    inner = step.turns[depth:]
    if build.turn.loop.kind == "batches":
        return () if not inner else None
    if build.turn.loop.kind != "epochs" or not inner or inner[-1].loop.kind != "batches":
        return None
    loop = inner[-1].loop
    generated = len(inner) > 1
    if generated and not all(_is_of_a_generator(each.loop, step) for each in inner[:-1]):
        return None
    elsewhere = build.event.place.function != build.turn.loop.place.function
    # Who draws batches by hand may draw those of a new task each time, but not in each epoch.
    called = generated or (loop.loader is None and loop.over.endswith(")") and not loop.counted)
    drawn = (called and not _counts_epochs(build.turn.loop)) or (loop.counted and elsewhere)
    if drawn and not build.rows_of:
        return None
    return (loop.place[:3], loop.loader, build.rows_of)


def _counts_epochs(loop: Loop) -> bool:
    return any(words(each) & {"epoch", "epochs"} for each in loop.variables)


def _rows_of(*batch: object) -> frozenset[Tensor]:
    found = (each.rows_of for each in batch if isinstance(each, Tensor))
    return frozenset(each for each in found if each is not None)


def _is_of_a_generator(loop: Loop, step: OptimizerStep) -> bool:
    """It is in a function that did not call the step: it yields to the loop that did."""
    functions = {step.place.function, *(each.function for each in step.stack)}
    return loop.kind == "other" and loop.place.function not in functions


def _starts_afresh(event: Event, loop: Loop) -> bool:
    """The loop is named for something that starts again in each iteration."""
    over = str(loop.over)
    names = [over, event.place.function]
    names += [turn.loop.place.function for turn in event.turns]
    epochs = _counts_epochs(loop) or bool(words(over) & {"epoch", "epochs"})
    starts = _FRESH_STARTS - _OF_ONE_TRAINING if epochs else _FRESH_STARTS
    return any(words(name) & starts for name in names) or any(
        words(name) & _FRESH_STARTS for name in loop.variables
    )
