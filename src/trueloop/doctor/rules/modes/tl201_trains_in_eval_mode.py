"""After validation the model trains in eval mode.

## What it does

Finds a model that `model.eval()` puts into eval mode for validation and that then trains without
`model.train()`: `train()` is called once before the loop over epochs, validation returns before it
restores the mode, or only a part of the model is restored.

## Why it breaks training

In eval mode dropout is off, and batch norm uses its running statistics without updating them. From
the second epoch on you train a different model: without regularisation, and normalised with
statistics that stay fixed while the weights change. Nothing raises. The signs are a training loss
that drops after the first validation, more overfitting, and with batch norm a loss that drifts or
explodes. A model without dropout and batch norm is not affected.

## Wrong

```python
model.train()
for epoch in range(epochs):
    train_one_epoch(model, train_loader)
    validate(model, val_loader)  # calls model.eval()
```

## Right

```python
for epoch in range(epochs):
    model.train()
    train_one_epoch(model, train_loader)
    validate(model, val_loader)
```

## Sources

- PyTorch,
  [Module.eval](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.eval)
- PyTorch, [Autograd mechanics: evaluation
  mode](https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval):
  "You are responsible for calling `model.eval()` and `model.train()` if your model relies on
  modules such as `torch.nn.Dropout` and `torch.nn.BatchNorm2d`"

## How it is detected

An `eval()` call is followed by a forward pass without a gradient, and then by a forward pass in
eval mode whose loss goes through `backward()` and a `step()` of the model's optimizer; the same
layers were trained in train mode before, or the `eval()` is in the validation's own function. Two
more cases are faults: an `eval()` that overrides a `train()` of the same function before any batch,
and an `eval()` after the forward pass inside the training loop, so that only the first batch trains
in train mode. Also a model of transformers that `from_pretrained` hands out, which is in eval mode,
where the program switches gradient checkpointing on, which acts only in train mode; and a module
that comes whole out of the file in which the program saves it, and continues to train after an
`eval()`. Not reported: layers that the training itself puts into eval mode (a frozen backbone,
frozen batch norm; a function that calls `eval()` and then trains), a new head, in train mode, that
is all that learns, models fine-tuned in eval mode from the start, and models without mode-dependent
layers. A network that cannot be read is reported as advice, since it may have no such layers: a
function gets it from a caller that is not there, or it comes from a package that is not known for
its networks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from trueloop.doctor.model.events import (
    Backward,
    Ended,
    EscapedToUnknown,
    FileLoaded,
    FileSaved,
    GradTaken,
    ManualUpdate,
    ModelForward,
    ModeSet,
    OptimizerStep,
    SamplingGap,
    StateDictLoaded,
    Used,
    ZeroGrad,
)
from trueloop.doctor.model.file_origins import checkpoint_of
from trueloop.doctor.model.findings import Insert, Location, Remedy
from trueloop.doctor.model.things import Model, Optimizer, Turn
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.mode_effects import effects
from trueloop.doctor.rules.shared.own_files import OwnFiles
from trueloop.doctor.rules.shared.passes import (
    Forwards,
    called,
    may_switch,
    may_train,
    pass_of,
    severity_of,
    switches,
    takes_back,
)


@dataclass(eq=False)
class Sleep:
    """A stretch that a layer spends in eval mode."""

    cause: ModeSet
    forwards: list[int] = field(default_factory=list)
    wanted: bool = False
    """It was trained so at once: that is what the code wants."""
    undone: ModeSet | None = None
    """The `train()` just before, which this `eval()` takes back before any batch is seen."""
    within: Turn | None = None
    """It was trained in train mode in this turn, before the `eval()` came in the same turn."""


class TrainsInEvalMode(Rule):
    code = "TL201"

    def __init__(self) -> None:
        super().__init__()
        self.forwards = Forwards()
        self.asleep: dict[Model, Sleep] = {}
        self.again: dict[Model, ModeSet] = {}
        """The last `eval()` of those that were asleep before it."""
        self.sleeps: dict[int, dict[Model, Sleep]] = {}
        self.trained: dict[Model, Turn | None] = {}
        """In train mode, and in which turn last."""
        self.fresh: set[int] = set()
        self.woken: dict[Model, set[frozenset[str]]] = {}
        """Those that a branch has put back in train mode, with its conditions."""
        self.chosen: set[Model] = set()
        """Modules whose own `train()` was called since the last `eval()`."""
        self.reported: set[Location] = set()
        self.last: ModeSet | None = None
        """The switch that no forward has followed yet."""
        self.checkpointed: dict[Model, Used] = {}
        """Models that save memory only in train mode, until a mode is chosen."""

        self.files = OwnFiles()
        self.out_of_file: dict[Model, FileLoaded] = {}
        """Modules that a file had whole."""
        self.from_the_start: list[tuple[ModelForward, Sleep]] = []
        """Trainings with nothing between them and the `eval()`."""

    def on_file_loaded(self, event: FileLoaded) -> None:
        self.files.add(event)

    def on_file_saved(self, event: FileSaved) -> None:
        self.files.add(event)

    def on_state_dict_loaded(self, event: StateDictLoaded) -> None:
        source = checkpoint_of(event.state)
        load = self.files.load_of(source) if source is not None else None
        if load is not None and isinstance(event.thing, Model) and event.thing.made == load.place:
            self.out_of_file[event.thing] = load

    def on_ended(self, event: Ended) -> None:
        for forward, sleep in self.from_the_start:
            load = self.out_of_file.get(sleep.cause.model)
            if load is None or not event.whole_program or not self.files.is_saved(load):
                continue
            if sleep.cause.guards <= load.guards:
                self._report_resumed(forward, sleep)
                return

    def on_used(self, event: Used) -> None:
        if event.what.endswith(".gradient_checkpointing_enable"):
            self.checkpointed[event.subject] = event

    def on_mode_set(self, event: ModeSet) -> None:
        for model in [each for each in self.checkpointed if each.shares_parameters(event.model)]:
            self.refute(self.checkpointed.pop(model).place)
        undone = self.last if takes_back(event, self.last) and event.training is False else None
        self.last = event
        if event.training is False:
            self.chosen.difference_update(event.model.family())
        else:
            self.chosen.add(event.model)
        for member in event.model.family():
            if event.training is False:
                same = event.turn is not None and self.trained.get(member) == event.turn
                within = event.turn if same else None
                if member in self.asleep:
                    self.again[member] = event
                self.asleep.setdefault(member, Sleep(event, undone=undone, within=within))
            elif self.asleep.pop(member, None) is not None and event.guards:
                self.woken.setdefault(member, set()).add(event.guards)

    def on_escaped_to_unknown(self, event: EscapedToUnknown) -> None:
        self.last = None
        for thing in event.things:
            for member in thing.family() if isinstance(thing, Model) else ():
                if member in self.asleep:
                    self.asleep[member].undone = self.asleep[member].within = None

    def on_sampling_gap(self, event: SamplingGap) -> None:
        """Who sleeps sleeps on, and evaluates where no gradient was recorded: of any other forward
        the backward may be in the gap."""
        self.last = None
        self.fresh.clear()
        if event.modes_switched:
            self.asleep.clear()
        for sleep in self.asleep.values():
            sleep.undone = sleep.within = None
            sleep.forwards = [s for s in sleep.forwards if not self.forwards.by_serial[s].grad]

    def on_model_forward(self, event: ModelForward) -> None:
        self.last = None
        self.forwards.add(event)
        family = [member for member in event.model.family() if may_switch(member)]
        found = {m: self.asleep[m] for m in family if m.training is False and m in self.asleep}
        self.sleeps[event.serial] = found
        for sleep in found.values():
            sleep.forwards.append(event.serial)

    def on_backward(self, event: Backward) -> None:
        found = self.forwards.through(event)
        if event.loss is None or all(leaf.role == "parameter" for leaf in event.loss.inputs):
            # Otherwise it is the inputs' gradient that is wanted: an attack, a saliency map.
            self.fresh |= found

    def on_zero_grad(self, event: ZeroGrad) -> None:
        for serial in list(self.fresh):
            model, target = self.forwards.by_serial[serial].model, event.target
            if isinstance(target, Optimizer):
                clears = may_train(target, model)
            else:
                clears = not isinstance(target, Model) or target.shares_parameters(model)
            if clears:
                self.fresh.discard(serial)

    def on_grad_taken(self, event: GradTaken) -> None:
        self.forwards.through(event)

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        for serial in sorted(self.fresh):
            forward = self.forwards.by_serial[serial]
            if may_train(event.optimizer, forward.model):
                self.fresh.discard(serial)
                if not self._trains_chosen_parts(event.optimizer, forward.model):
                    self._check(forward)

    def _trains_chosen_parts(self, optimizer: Optimizer, model: Model) -> bool:
        """The optimizer trains nothing but parts of the model that were put into train mode by
        themselves (`model.head.train()`): the rest is in eval mode because it does not learn."""
        held = [each for each in optimizer.models if each.shares_parameters(model)]
        apart = not any(each.covers(model) for each in held)
        return bool(held) and apart and self.chosen.issuperset(held)

    def on_manual_update(self, event: ManualUpdate) -> None:
        """A step without an optimizer."""
        for serial in sorted(self.fresh):
            forward = self.forwards.by_serial[serial]
            if any(model.shares_parameters(forward.model) for model in event.models):
                self.fresh.discard(serial)
                self._check(forward)

    def _check(self, forward: ModelForward) -> None:
        if switches(forward.model) is False:
            self.settle(forward.place)
        for model, used in self.checkpointed.items():
            if model.training is False and model.shares_parameters(forward.model):
                self._report_checkpointed(forward, used)
        sleeps = self.sleeps[forward.serial]
        family = [member for member in forward.model.family() if may_switch(member)]
        if any(guards - forward.guards for each in family for guards in self.woken.get(each, ())):
            # What wakes it is an option, which other runs leave out.
            self.refute(forward.place)
        for member, sleep in sleeps.items():
            if sleep.undone is not None and sleep.cause.model.covers(forward.model):
                self._report_overridden(forward, sleep, sleep.undone)
                return
            if _from_the_second_on(sleep, forward):
                self._report_from_second_batch(forward, sleep)
                return
            evaluation = self._evaluation(sleep, forward)
            if evaluation is None:
                if not sleep.wanted and not sleep.cause.turns:
                    self.from_the_start.append((forward, sleep))
                sleep.wanted = True
            elif self._is_put_to_sleep_for(forward, member, sleep):
                sleep.wanted = True
            elif not sleep.wanted and self._is_fault(member, sleep, evaluation, forward):
                self._report(forward, sleep, evaluation)
                return
        awake = (member for member in family if member not in sleeps)
        self.trained.update(dict.fromkeys(awake, forward.turn))

    def _evaluation(
        self, sleep: Sleep, forward: ModelForward, since: int = 0
    ) -> ModelForward | None:
        """A forward pass without training in the same eval mode, in an earlier iteration."""
        before = (serial for serial in sleep.forwards if since < serial < forward.serial)
        for each in self.forwards.unused(before):
            if each.turn is None or pass_of(each) != forward.turn:
                return each
        return None

    def _is_put_to_sleep_for(self, forward: ModelForward, member: Model, sleep: Sleep) -> bool:
        """The function that trains has called `eval()` itself, before its loop, and evaluates
        nothing in between: that the model was in eval mode already makes no difference."""
        again = self.again.get(member)
        if again is None or again.serial < sleep.cause.serial:
            return False
        depth = len(again.stack)
        frame = (*forward.stack, forward.place)[depth] if depth <= len(forward.stack) else None
        here = frame is not None and frame.function == again.place.function
        before = forward.stack[:depth] == again.stack
        around = forward.turns[: len(again.turns)] == again.turns
        return here and before and around and self._evaluation(sleep, forward, again.serial) is None

    def _is_fault(
        self, member: Model, sleep: Sleep, evaluation: ModelForward, forward: ModelForward
    ) -> bool:
        if member in self.trained:
            return bool(evaluation.turns)
        function = sleep.cause.place.function
        validates = pass_of(evaluation) is not None and function == evaluation.place.function
        return validates and bool(function) and function != forward.place.function

    def _report(self, forward: ModelForward, sleep: Sleep, evaluation: ModelForward) -> None:
        if sleep.cause.place in self.reported:
            return
        self.reported.add(sleep.cause.place)
        name = called(forward)
        self.report(
            forward.place,
            f"`{name}` trains in eval mode after the validation at line"
            f" {evaluation.place.line}: {_effects(forward)}.",
            fix=f"Call `{name}.train()` {_where_to_wake(forward, sleep, evaluation)}.",
            severity=severity_of(forward.model),
            related=[(sleep.cause.place, "turns eval mode on; nothing turns it off again")],
            remedies=self._remedy(forward, sleep),
        )

    def _report_resumed(self, forward: ModelForward, sleep: Sleep) -> None:
        name = called(forward)
        self.report(
            forward.place,
            f"`{name}` continues to train in eval mode, because of the `eval()` at line"
            f" {sleep.cause.place.line} after it is loaded from the file of the last run:"
            f" {_effects(forward)}.",
            fix=f"Call `{name}.train()` before the loop over the training batches.",
            severity=severity_of(forward.model),
            related=[(sleep.cause.place, "turns eval mode on")],
        )

    def _report_checkpointed(self, forward: ModelForward, used: Used) -> None:
        name = called(forward)
        self.report(
            used.place,
            f"`{name}` trains in eval mode, as `from_pretrained` hands it out: gradient"
            " checkpointing acts only in train mode, so it saves no memory, and dropout, if there"
            " is any, is off.",
            fix=f"Call `{name}.train()` before the loop over the training batches.",
            related=[(forward.place, "trains in eval mode")],
        )

    def _report_overridden(self, forward: ModelForward, sleep: Sleep, undone: ModeSet) -> None:
        if sleep.cause.place in self.reported:
            return
        self.reported.add(sleep.cause.place)
        name = called(forward)
        self.report(
            forward.place,
            f"`{name}` trains in eval mode: an `eval()` overrides the `train()` at line"
            f" {undone.place.line} before the first batch, so {_effects(forward)}.",
            fix=f"Call `{name}.eval()` after the training loop, before the validation.",
            severity=severity_of(forward.model),
            related=[(sleep.cause.place, "turns eval mode on, too early")],
        )

    def _report_from_second_batch(self, forward: ModelForward, sleep: Sleep) -> None:
        if sleep.cause.place in self.reported:
            return
        self.reported.add(sleep.cause.place)
        name = called(forward)
        self.report(
            forward.place,
            f"`{name}` trains in eval mode from the second batch on, because the `eval()`"
            f" at line {sleep.cause.place.line} is inside the training loop: {_effects(forward)}.",
            fix=f"Call `{name}.eval()` after the training loop, before the validation.",
            severity=severity_of(forward.model),
            related=[(sleep.cause.place, "turns eval mode on, after the first batch")],
        )

    def _remedy(self, forward: ModelForward, sleep: Sleep) -> list[Remedy]:
        """`model.train()` before the loop, where the whole model sleeps for that one cause."""
        turn, name = forward.turn, forward.spelled
        if turn is None or not name or forward.training is not False:
            return []
        loop = turn.loop
        inside = any(each.loop is loop for each in sleep.cause.turns)
        here = loop.place.function == forward.place.function and not inside
        one = all(each.cause is sleep.cause for each in self.sleeps[forward.serial].values())
        if not here or not one or name.partition(".")[0] in loop.variables:
            return []
        return [] if loop.framework else [Insert(f"{name}.train()", loop.place, "before")]


def _effects(forward: ModelForward) -> str:
    norm = "batch norm does not update its running statistics"
    return effects(forward.model, "dropout is off", norm)


def _where_to_wake(forward: ModelForward, sleep: Sleep, evaluation: ModelForward) -> str:
    """The place of a `train()` that is missing: one before the training loop does not help where
    the validation runs inside that loop."""
    if forward.turn is not None and forward.turn.loop.framework:
        function = forward.place.function.rpartition(".")[2]
        return f"at the beginning of `{function}`" if function else "at the start of each epoch"
    loops = [turn.loop for turn in forward.turns]
    around = [turn.loop for turn in sleep.cause.turns]
    if forward.turn is not None and forward.turn.loop in around:
        return (
            f"after the validation at line {evaluation.place.line}: it runs inside the training"
            " loop, so a `train()` before that loop is undone"
        )
    if forward.turn is not None and len(loops) > 1:
        return "before the loop over the training batches, in every epoch"
    if forward.turn is not None:
        return "before the loop over the training batches"
    return "at the beginning of every epoch"


def _from_the_second_on(sleep: Sleep, forward: ModelForward) -> bool:
    """The first batch of a loop trained in train mode, and nothing but that loop's own `eval()`
    decides that the others do not."""
    before, turn = sleep.within, forward.turn
    return (
        before is not None
        and turn is not None
        and before.loop is turn.loop
        and sleep.cause.guards <= forward.guards
        and sleep.cause.windows == forward.windows
        and sleep.cause.model.covers(forward.model)
    )
