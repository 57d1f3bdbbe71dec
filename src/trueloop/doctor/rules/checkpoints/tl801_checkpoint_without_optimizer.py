"""Training resumes with weights and epoch, but without the optimizer's state.

## What it does

Finds a resume that loads the model and continues at the saved epoch, with an optimizer that starts
without its state.

## Why it breaks training

Adam's moments, SGD's momentum and the step count of the bias correction are part of the training
state. Without them the first updates after the resume are too large or point in a different
direction: the loss jumps, and recovers over hundreds of updates, or does not. The resumed run
differs from the run that was never stopped. Plain SGD without momentum loses nothing.

## Wrong

```python
checkpoint = torch.load("last.pt")
model.load_state_dict(checkpoint["model"])
start_epoch = checkpoint["epoch"] + 1
for epoch in range(start_epoch, epochs):
    ...
```

## Right

```python
checkpoint = torch.load("last.pt")
model.load_state_dict(checkpoint["model"])
optimizer.load_state_dict(checkpoint["optimizer"])
start_epoch = checkpoint["epoch"] + 1
```

and save `"optimizer": optimizer.state_dict()` in the checkpoint.

## Sources

- PyTorch, "Saving and loading a general checkpoint":
  https://docs.pytorch.org/tutorials/recipes/recipes/saving_and_loading_a_general_checkpoint.html

## How it is detected

A file is loaded; the model's weights and the first epoch of the loop come from it; an optimizer of
that model steps in the loop; and no optimizer loads a state. Not reported: weights that are loaded
for fine-tuning or evaluation, an epoch that is only printed, optimizers without state, and code
that cannot be read and gets the checkpoint.
"""

from __future__ import annotations

from trueloop.doctor.model.events import (
    EscapedToUnknown,
    LoopEntered,
    OptimizerStep,
    StateDictLoaded,
)
from trueloop.doctor.model.things import Checkpoint, Loop, Model, Optimizer
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called, checkpoint_of


class CheckpointWithoutOptimizer(Rule):
    code = "TL801"

    def __init__(self) -> None:
        super().__init__()
        self._models: list[tuple[Checkpoint, Model, StateDictLoaded]] = []
        self._resumed: dict[Loop, Checkpoint] = {}
        self._restored = False

    def on_state_dict_loaded(self, event: StateDictLoaded) -> None:
        if not isinstance(event.thing, Model):
            # An optimizer, or something that may hold one.
            if isinstance(event.thing, Optimizer) or not event.thing.known:
                self._restore()
            return
        source = checkpoint_of(event.state)
        if source is not None:
            self._models.append((source, event.thing, event))
        if self._restored:
            self.refute(event.place)

    def on_escaped_to_unknown(self, event: EscapedToUnknown) -> None:
        if any(isinstance(thing, Checkpoint) for thing in event.things):
            self._restore()

    def _restore(self) -> None:
        """The optimizer has its state again, or may have it."""
        self._restored = True
        for _, _, loaded in self._models:
            self.refute(loaded.place)

    def on_loop_entered(self, event: LoopEntered) -> None:
        source = checkpoint_of(event.loop.resumed_from)
        if source is not None:
            self._resumed[event.loop] = source

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        if self._restored or _has_no_state(event.optimizer):
            return
        for turn in event.turns:
            resumed = self._resumed.get(turn.loop)
            if resumed is None or resumed.optimizer_restored:
                continue
            for source, model, loaded in self._models:
                if _root(source) is _root(resumed) and event.optimizer.trains(model):
                    self.report(
                        loaded.place,
                        "The run resumes with this checkpoint's weights and epoch, but"
                        f" {called(event.optimizer, 'the optimizer')} starts without its"
                        " state (momentum, moments, step count): the first updates are"
                        " wrong, and the loss jumps.",
                        fix="Save `optimizer.state_dict()` in the checkpoint and load it here.",
                        related=[(turn.loop.place, "training resumes at the saved epoch")],
                    )


def _root(checkpoint: Checkpoint) -> Checkpoint:
    while isinstance(checkpoint.inside, Checkpoint):
        checkpoint = checkpoint.inside
    return checkpoint


def _has_no_state(optimizer: Optimizer) -> bool:
    """Plain SGD: there is nothing to restore."""
    if not optimizer.kind.endswith(".SGD"):
        return False
    return optimizer.arguments.get("momentum", 0) in (0, 0.0)
