"""The best weights are stored as `model.state_dict()`, which changes with every update.

## What it does

Finds a state dict that is stored for later without a copy. `state_dict()` returns the live tensors,
and training keeps changing them.

## Why it breaks training

The "best" weights that are loaded or saved at the end are the last ones. Early stopping and the
choice of the best epoch have no effect, and nothing raises: the run ends with the weights of the
last, usually overfitted, epoch and reports the best epoch's score for them.

## Wrong

```python
if val_loss < best_loss:
    best_state = model.state_dict()
...
model.load_state_dict(best_state)
```

## Right

```python
if val_loss < best_loss:
    best_state = copy.deepcopy(model.state_dict())
```

## Sources

- PyTorch, "Saving and Loading Models" (note on `best_model_state`):
  https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html

## How it is detected

The same uncopied state dict that was taken in a training loop is loaded or saved after an optimizer
has updated the model again. In a function or method that nobody is seen to call: it is kept for the
best value of a metric, and returned after the loop or left in an attribute. `copy.copy`,
`dict(...)` and `{**...}` copy the dictionary, not the tensors. Not reported: a state dict that is
saved or loaded at once, copied (`deepcopy`, `.clone()` of each tensor), taken before the model
moves to a different device, taken every n-th epoch whatever its score, taken after training, taken
before it under a name that gets a copy as soon as there is a better model, or that of a model which
each turn of the loop makes for itself (folds).
"""

from __future__ import annotations

import re

from trueloop.doctor.model.events import (
    Ended,
    FileSaved,
    Moved,
    OptimizerStep,
    StateDictCreated,
    StateDictLoaded,
)
from trueloop.doctor.model.findings import Replace
from trueloop.doctor.model.things import Loop, Model, Optimizer, StateDict, Turn
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called, state_dicts_in
from trueloop.doctor.rules.shared.passes import may_train

DEEP = "copy.deepcopy({})"
BY_HAND = "{key: value.clone() for key, value in {}.items()}"
"""For files that do not import `copy`."""
_BETTER = re.compile(r"(?P<one>.+) [<>]=? (?P<other>.+)")


_Use = FileSaved | StateDictLoaded | Ended


class BestStateAliased(Rule):
    code = "TL805"

    def __init__(self) -> None:
        super().__init__()
        self._taken: dict[StateDict, StateDictCreated] = {}
        self._updated: dict[StateDict, OptimizerStep] = {}
        self._training: dict[Loop, OptimizerStep] = {}
        self._stepped: dict[Turn, set[Optimizer]] = {}
        self._used: set[StateDict] = set()
        self._devices: dict[Model, str] = {}
        """Where models were moved to last."""

    def on_moved(self, event: Moved) -> None:
        """The tensors on the old device are not updated any more: the state dict is a copy."""
        if not event.device or self._devices.get(event.model) == event.device:
            return
        for other in self._devices:  # a wrapper, whose module was moved alone
            if event.model.covers(other) or other.covers(event.model):
                self._devices[other] = event.device
        self._devices[event.model] = event.device
        for state in [*self._taken]:
            if isinstance(state.owner, Model) and event.model.covers(state.owner):
                del self._taken[state]

    def on_state_dict_created(self, event: StateDictCreated) -> None:
        if not isinstance(event.state.owner, Model) or event.state.copied:
            return
        # Every n-th epoch's, whatever its score: what is loaded at the end are the last weights.
        if not event.windows or not all("rank" in guard for guard in event.guards):
            self._taken[event.state] = event

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        for turn in event.turns:
            self._training[turn.loop] = event
            self._stepped.setdefault(turn, set()).add(event.optimizer)
        for state in self._taken:
            if isinstance(state.owner, Model) and event.optimizer.trains(state.owner):
                self._updated.setdefault(state, event)

    def on_file_saved(self, event: FileSaved) -> None:
        for state in state_dicts_in(event.value):
            self._used.add(state)
            taken = self._taken.get(state)
            if taken is not None and taken.turns:
                self._check(taken, event, "saved")

    def on_state_dict_loaded(self, event: StateDictLoaded) -> None:
        for state in state_dicts_in(event.state):
            self._used.add(state)
            if state.copied and state.name:
                self._refute_placeholders(state)
            taken = self._taken.get(state)
            if taken is not None:
                self._check(taken, event, "loaded")

    def _refute_placeholders(self, state: StateDict) -> None:
        """The name gets a copy once there is a better model: nobody loads what it had before the
        training."""
        for other, taken in self._taken.items():
            if other.name == state.name and not taken.turns:
                self.refute(taken.place)

    def on_ended(self, event: Ended) -> None:
        for value in event.handed_on:
            for state in state_dicts_in(value):
                taken = self._taken.get(state)
                if taken is None or state in self._used or not _is_of_the_best(taken):
                    continue
                if self._trains_on(taken):
                    self._check(taken, event, "used")

    def _trains_on(self, taken: StateDictCreated) -> bool:
        """The training loop does not end where the state dict is taken."""
        same = [each for each in self._taken.values() if each.place == taken.place]
        return any(
            step.serial > each.serial
            for each in same
            for turn in each.turns
            if (step := self._training.get(turn.loop)) is not None
        )

    def _check(self, taken: StateDictCreated, use: _Use, how: str) -> None:
        state = taken.state
        if state.copied or state.edited:
            return
        update = self._updated.get(state) or self._might_be_updated(taken, use)
        if update is None:
            return
        at_hand = state.deepcopy_at_hand
        self.report(
            taken.place,
            f"This state dict contains {called(state.owner, 'the model')}'s own tensors, not"
            f" copies: later updates change it before it is {how}.",
            fix="Copy it: `copy.deepcopy(model.state_dict())`.",
            related=[
                (update.place, "changes it"),
                *([] if isinstance(use, Ended) else [(use.place, f"{how} here as if unchanged")]),
            ],
            remedies=[Replace(taken.place, DEEP if at_hand else BY_HAND)],
        )

    def _might_be_updated(self, taken: StateDictCreated, use: _Use) -> OptimizerStep | None:
        """Kept under a condition in some turn of a training loop, and used when that turn is over:
        the turns after it train on."""
        for turn in taken.turns:
            step = self._training.get(turn.loop)
            if step is None or turn in use.turns:
                continue
            # An option that the training depends on, too, is the same in each turn.
            is_conditional = taken.state.conditional or not taken.guards <= step.guards
            if is_conditional and not self._trains_another_model(turn, taken.state):
                return step
        return None

    def _trains_another_model(self, taken_in: Turn, state: StateDict) -> bool:
        """The other turns of the loop train a different model: each makes its own (a fold)."""
        owner = state.owner
        others = [
            isinstance(owner, Model) and may_train(optimizer, owner)
            for turn, optimizers in self._stepped.items()
            if turn.loop is taken_in.loop and turn != taken_in
            for optimizer in optimizers
        ]
        return bool(others) and not any(others)


def _is_of_the_best(taken: StateDictCreated) -> bool:
    """It is kept under a comparison of two quantities of the program."""
    for guard in taken.guards:
        parts = _BETTER.fullmatch(guard.removeprefix("not "))
        if parts and not any(re.fullmatch(r"-?[\d.]+", part) for part in parts.groups()):
            return bool(taken.turns)
    return False
