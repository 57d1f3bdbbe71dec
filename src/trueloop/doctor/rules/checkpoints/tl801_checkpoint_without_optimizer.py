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

A file is loaded; the model's weights and the first epoch of the loop, or a counter that goes up by
one in it, come from it; an optimizer of that model steps in the loop; and no optimizer of these
weights loads a state. In a running program the count may also be in the file's name. A schedule
that begins again beside an optimizer that was restored is reported too, also a `ReduceLROnPlateau`,
which waits its whole patience again. Not reported: weights that are loaded for fine-tuning (a part
of the model is new, or the file lacks some) or evaluation, an epoch that is only printed,
optimizers without state, a `LambdaLR` whose function adds the saved epoch to its own count, and
code that cannot be read and gets the checkpoint. A test whether the file has an entry (`if name in
checkpoint["optimizers"]`) holds: the program's own files have it. A program that evaluates and ends
by an option that nothing switches off trains nothing.
"""

from __future__ import annotations

import re

from trueloop.doctor.model.events import (
    EscapedToUnknown,
    LoopEntered,
    OptimizerStep,
    Replaced,
    SchedulerStep,
    StateDictLoaded,
)
from trueloop.doctor.model.file_origins import checkpoint_of
from trueloop.doctor.model.measurements import LoadedPartReplaced
from trueloop.doctor.model.things import NOWHERE, Checkpoint, Loop, Model, Optimizer, Scheduler
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called
from trueloop.doctor.rules.shared.passes import may_train


class CheckpointWithoutOptimizer(Rule):
    code = "TL801"

    def __init__(self) -> None:
        super().__init__()
        self._models: list[tuple[Checkpoint, Model, StateDictLoaded]] = []
        self._resumed: dict[Loop, Checkpoint] = {}
        self._restored: list[Optimizer] = []
        self._restored_at = NOWHERE
        self._positioned: set[Scheduler] = set()
        """Schedules that are given a position, or may be."""
        self._ticks: dict[Scheduler, list[set[Loop]]] = {}
        """The loops around each tick that came before a loop was known to resume."""
        self._unclear = False
        """Something that may hold an optimizer loads a state, or gets the file."""

    def on_state_dict_loaded(self, event: StateDictLoaded) -> None:
        if isinstance(event.thing, Scheduler):
            self._positioned.add(event.thing)
            return
        if isinstance(event.thing, Optimizer):
            self._restored.append(event.thing)
            self._restored_at = event.place
            self._refute(event.thing)
            return
        if not isinstance(event.thing, Model):
            if not event.thing.known:
                self._anything_is_restored()
            return
        source = checkpoint_of(event.state)
        if source is not None and not (event.missing or event.unexpected):
            self._models.append((source, event.thing, event))
        if self._unclear:
            self.refute(event.place)
        for optimizer in self._restored:
            self._refute(optimizer)

    def on_replaced(self, event: Replaced) -> None:
        self._begins_anew(event.model)

    def on_loaded_part_replaced(self, event: LoadedPartReplaced) -> None:
        self._begins_anew(event.model)

    def _begins_anew(self, model: Model) -> None:
        """A new head is trained on the loaded weights: the state of an optimizer of the old one is
        of no use to it."""
        self._models = [each for each in self._models if not each[1].shares_parameters(model)]

    def on_escaped_to_unknown(self, event: EscapedToUnknown) -> None:
        if event.callee.rpartition(".")[2] in _OF_TENSORS:
            return
        if any(isinstance(each, Checkpoint) and not _is_a_number(each) for each in event.things):
            self._anything_is_restored()

    def _anything_is_restored(self) -> None:
        self._unclear = True
        for _, _, loaded in self._models:
            self.refute(loaded.place)

    def _refute(self, optimizer: Optimizer) -> None:
        """An optimizer has its state again: with the weights that it trains all is well."""
        for _, model, loaded in self._models:
            if may_train(optimizer, model):
                self.refute(loaded.place)

    def on_loop_entered(self, event: LoopEntered) -> None:
        self._note(event.loop)

    def _note(self, loop: Loop) -> None:
        """A loop resumes at a number from a file; a counter shows that after its first turn."""
        source = checkpoint_of(loop.resumed_from)
        if source is not None:
            self._resumed[loop] = source

    def on_scheduler_step(self, event: SchedulerStep) -> None:
        """The optimizer is restored, and its schedule begins again; live, where its count shows
        it."""
        scheduler = event.scheduler
        watches = scheduler.kind == PLATEAU
        if (event.metric is not None and not watches) or scheduler.own_step:
            self._positioned.add(scheduler)
        for turn in event.turns:
            if turn.loop not in self._resumed:
                self._note(turn.loop)
        resumed = [each for turn in event.turns if (each := self._resumed.get(turn.loop))]
        if not resumed:
            self._ticks.setdefault(scheduler, []).append({turn.loop for turn in event.turns})
            return
        if any(self._resumed.keys().isdisjoint(loops) for loops in self._ticks.pop(scheduler, ())):
            self._positioned.add(scheduler)
        begins_at = {turn.loop.begins_at for turn in event.turns if turn.loop in self._resumed}
        if "last_epoch" in scheduler.attributes or begins_at & scheduler.read_counts:
            self._positioned.add(scheduler)  # by hand
        if scheduler in self._positioned or scheduler.first_count != 0 or self._unclear:
            return
        if scheduler.optimizer not in self._restored:
            return
        self._positioned.add(scheduler)
        if scheduler.kind in _WITHOUT_COUNT or scheduler.optimizer is None:
            return
        for source, model, _ in self._models:
            if _root(source) is _root(resumed[-1]) and scheduler.optimizer.trains(model):
                self._report_schedule(event)

    def _report_schedule(self, event: SchedulerStep) -> None:
        scheduler, named = event.scheduler, called(event.scheduler, "the schedule")
        loses = (
            f"{named} has forgotten its best value and how long that was ago: each resume puts off"
            " the next fall of the learning rate."
            if scheduler.kind == PLATEAU
            else f"{named} begins at its first step again: the learning rates from here on are not"
            " those of this run."
        )
        self.report(
            self._restored_at,
            f"The run resumes with this checkpoint's weights, optimizer and count, but {loses}",
            fix="Save `scheduler.state_dict()` in the checkpoint and load it here.",
            related=[(scheduler.made, "begins at 0"), (event.place, "steps it")],
        )

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        optimizer = event.optimizer
        if self._unclear or _has_no_state(optimizer):
            return
        for turn in event.turns:
            if turn.loop not in self._resumed and turn.loop.resumed_from is not None:
                self._note(turn.loop)
            resumed = self._resumed.get(turn.loop)
            if resumed is None or self._may_be_restored(optimizer, resumed):
                continue
            for source, model, loaded in self._models:
                if self._is_one_run(source, resumed) and optimizer.trains(model):
                    self._report_missing(loaded, turn.loop, optimizer)
                    break

    def _is_one_run(self, weights: Checkpoint, count: Checkpoint) -> bool:
        """The weights and the count belong together. A GAN's weights may be in one file, its
        optimizers and the epoch in a second one; but where the second has weights too, of a model
        that nothing trains, a new training begins from the first."""
        if _root(weights) is _root(count):
            return True
        beside = [model for each, model, _ in self._models if _root(each) is _root(count)]
        steps = [each for each in self.timeline.events if isinstance(each, OptimizerStep)]
        is_trained = any(each.optimizer.trains(model) for each in steps for model in beside)
        return bool(self._restored) and (is_trained or not beside)

    def _may_be_restored(self, optimizer: Optimizer, resumed: Checkpoint) -> bool:
        """It was, under this name or as an optimizer of the same weights; or the source loads the
        state of an optimizer that this run has not come to."""
        for each in self._restored:
            held = each.models or optimizer.models
            if each is optimizer or any(
                may_train(each, model) and may_train(optimizer, model) for model in held
            ):
                return True
        if resumed.optimizer_restored is None:
            return False
        return not resumed.optimizer_restored <= {_last(each) for each in self._restored}

    def _report_missing(self, loaded: StateDictLoaded, loop: Loop, optimizer: Optimizer) -> None:
        counts = "count" if loop.kind == "batches" else "epoch"
        self.report(
            loaded.place,
            f"The run resumes with this checkpoint's weights and {counts}, but"
            f" {called(optimizer, 'the optimizer')} starts without its"
            " state (momentum, moments, step count): the first updates are"
            " wrong, and the loss jumps.",
            fix="Save `optimizer.state_dict()` in the checkpoint and load it here.",
            related=[(loop.place, f"training resumes at the saved {counts}")],
        )


def _last(optimizer: Optimizer) -> str:
    return optimizer.name.rpartition(".")[2]


_OF_TENSORS = frozenset(
    "size dim numel float half double to cpu cuda clone detach numpy item tolist view".split()
)
"""Methods of a weight in the file, which restore nothing: `weight.size() == own[name].size()`."""
_NUMBERS = re.compile(r"epoch|iter|step|count|sampler|loss|acc|best|metric|score", re.I)
_STATES = re.compile(r"opt|state|dict|model|sched|weight|net|param", re.I)
PLATEAU = "ReduceLROnPlateau"
_WITHOUT_COUNT = ("ConstantLR", "MultiplicativeLR", "ExponentialLR")
"""Schedules that have little to lose."""


def _is_a_number(part: Checkpoint) -> bool:
    """An entry whose key says that it is not the state of an optimizer: `checkpoint["epoch"]`."""
    if part.inside is None:
        return False
    keys = " ".join(str(key) for key, each in part.inside.attributes.items() if each is part)
    return bool(_NUMBERS.search(keys)) and not _STATES.search(keys)


def _root(checkpoint: Checkpoint) -> Checkpoint:
    while isinstance(checkpoint.inside, Checkpoint):
        checkpoint = checkpoint.inside
    return checkpoint


def _has_no_state(optimizer: Optimizer) -> bool:
    """Plain SGD: there is nothing to restore."""
    if not optimizer.kind.endswith(".SGD"):
        return False
    return optimizer.arguments.get("momentum", 0) in (0, 0.0)
