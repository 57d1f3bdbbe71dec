"""Validation runs with dropout or batch norm in train mode.

## What it does

Finds a pass over validation or test data through a trained model that has dropout or batch norm and
was not put into eval mode.

## Why it breaks training

In train mode dropout drops activations at random: validation scores are noisy and too low. Batch
norm normalises each batch with its own statistics, so scores depend on the batch size and on the
other samples of the batch. It also updates its running statistics with validation data, even under
`no_grad`. The scores change from call to call with the same weights and differ from those of the
deployed model; early stopping and the choice of the best epoch follow the noise.

## Wrong

```python
@torch.no_grad()
def validate(model, loader):
    for images, labels in loader:
        correct += (model(images).argmax(1) == labels).sum().item()
```

## Right

```python
@torch.no_grad()
def validate(model, loader):
    model.eval()
    for images, labels in loader:
        correct += (model(images).argmax(1) == labels).sum().item()
```

and `model.train()` where the next training epoch begins.

## Sources

- PyTorch,
  [Module.eval](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.eval)
- PyTorch, [Autograd mechanics: evaluation
  mode](https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval)
- Ioffe and Szegedy, [Batch Normalization](https://arxiv.org/abs/1502.03167), 2015, section 3.1:
  inference with batch norm

## How it is detected

A loop over batches calls a model in train mode, computes no gradient, makes no step, and uses the
outputs. The loader, loop or function has a validation name, or the loop computes a loss under
`no_grad`. The same model is trained in the same program and has a mode-dependent layer; if the
model cannot be read, the program must call `train()` or `eval()` on it somewhere; `eval()`, if it
is a class of an installed package, which may have neither; what is not even of a known package is
reported as advice. Not reported: a module that gets its mode as an argument (`training=False`, and
`training=True` where it is trained), an explicit `train()` for the pass (Monte-Carlo dropout,
batch-norm statistics), several forward passes of one batch, dropout layers that an option keeps
from being called, passes that compute nothing, and loops that end after a few batches. An explicit
`train()` is reported if it overrides an `eval()` just before it, in the same function or in what it
calls for its batches, or comes after the forward pass, so that the rest of the pass runs in train
mode. In source, one call outside of any loop over batches counts too, if it runs under `no_grad` on
something that is named for validation (`model(x_val)`), or in a function that is named so and does
not train, the model is known to have such a layer, and has trained before or got its weights.

Also sampling in a program that trains: a loop under `no_grad` gives the model what it returned in
the turn before (tokens, a denoised image), in train mode, and nothing trains on the result.

Also a program that trains nothing: a loop calls, without gradients, a network that is known to have
mode-dependent layers, whose weights are from a file or a library, and of which nothing in its files
calls `eval()` or `train()`.
"""

from __future__ import annotations

from trueloop.doctor.model.events import (
    Backward,
    Ended,
    EscapedToUnknown,
    Event,
    GradTaken,
    Loss,
    ManualUpdate,
    ModelForward,
    ModeSet,
    OptimizerStep,
    StateDictLoaded,
)
from trueloop.doctor.model.findings import Insert, Location, Remedy
from trueloop.doctor.model.things import Loop, Model, Turn
from trueloop.doctor.model.vocabulary import MODE_DEPENDENT_LAYERS
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.mode_effects import effects
from trueloop.doctor.rules.shared.passes import (
    Forwards,
    called,
    called_at_once,
    is_of_library,
    loops_of,
    may_switch,
    may_train,
    named_validation,
    names_validation,
    overrides,
    pass_of,
    severity_of,
    sleeps_alone,
    switches,
    takes_back,
    wholes,
)
from trueloop.doctor.rules.shared.prediction_passes import PredictionPasses
from trueloop.doctor.rules.shared.sampling_passes import SamplingPasses
from trueloop.doctor.rules.shared.trials import is_trial


class ValidatesInTrainMode(Rule):
    code = "TL202"
    hygiene = True  # a test looks at shapes, or compares two outputs: nothing is validated

    def __init__(self) -> None:
        super().__init__()
        self.whole_program = False
        """The run was that of a program: what made the networks has been seen."""
        self.forwards = Forwards()
        self.candidates: list[ModelForward] = []
        self.switched_by: dict[int, ModeSet | None] = {}
        """By the serial number of a candidate."""
        self.predictions = PredictionPasses()
        self.sampling = SamplingPasses()
        self.at_once: list[tuple[ModelForward, Location]] = []
        """Calls outside of any loop over batches of a validation, and where to speak of them."""
        self.learning: set[Loop] = set()
        self.losses: set[Turn] = set()
        self.loaded: list[Model] = []
        self.steps: list[OptimizerStep] = []
        self.updated: set[Model] = set()
        """Models that are trained by hand."""
        self.filled: set[Model] = set()
        """Those that get their first weights by hand, in a constructor."""
        self.switched: list[ModeSet] = []
        self.last: ModeSet | None = None
        """The switch that no forward has followed yet."""
        self.overridden: tuple[ModeSet, ModeSet] | None = None
        """A switch to eval mode, and one to train mode that what its function called has made."""
        self.woken: dict[Model, ModeSet] = {}
        """Models that run in train mode after such a switch, and the switch."""
        self.asked: set[Model] = set()
        """Models that were put into train mode explicitly since they were last trained."""
        self.repeated: set[Loop] = set()
        self.calls: set[tuple[Turn, tuple[object, ...]]] = set()
        self.alone: set[int] = set()
        """Forwards of a model that is in eval mode without the layers inside."""
        self.asleep: dict[tuple[object, ...], Turn] = {}
        """The turn in which a call last ran in eval mode."""

    def on_mode_set(self, event: ModeSet) -> None:
        contradicts = takes_back(event, self.last)
        before = self.last
        for each in event.model.family():
            self.woken.pop(each, None)
        self.overridden = (before, event) if before and overrides(event, before) else None
        self.last = event
        self.switched.append(event)
        if event.training is not False and not contradicts:
            self.asked.update(event.model.family())
        else:
            self.asked.difference_update(event.model.family())

    def on_escaped_to_unknown(self, event: EscapedToUnknown) -> None:
        self.last = None

    def on_model_forward(self, event: ModelForward) -> None:
        self.last = None
        if self.overridden is not None and _same_frame(event, self.overridden[0]):
            # `for x, y in batches(model, data)`: what gives the batches has set train mode.
            self.asked.difference_update(self.overridden[1].model.family())
            self.woken.update(dict.fromkeys(event.model.family(), self.overridden[1]))
        self.overridden = None
        self.forwards.add(event)
        if not (event.spelled or event.model.name) and event.model.kind.startswith("torch.nn."):
            return  # `nn.Dropout(0.5)(x)`: no `eval()` reaches it (TL206)
        if sleeps_alone(event):
            self.alone.add(event.serial)
        training = event.training or event.serial in self.alone
        awake = training is True and self._is_awake(event.model)
        self.sampling.add(event, awake=awake)
        if awake:
            self.predictions.add(event)
        if training is False:
            self.settle(event.place)
        turn = pass_of(event)
        if awake and (place := called_at_once(event, turn)) is not None:
            self.at_once.append((event, place))
        if turn is None:
            return
        call = (*event.place[:3], event.model, len(event.stack))
        if (turn, call) in self.calls or event.turns[-1] is not turn:
            self.repeated.add(turn.loop)
        self.calls.add((turn, call))
        if training is False and any(
            each.guards for each in self.switched[-1:] if each.model.shares_parameters(event.model)
        ):
            # Eval mode is an option here, which other runs leave out.
            self.refute(event.place)
        if training is False:
            self.asleep[call] = turn
        elif training is True:
            before = self.asleep.get(call)
            given_back = turn.loop.framework == "Lightning"
            if self._is_awake(event.model, given_back) or self._woke_within(event, before, turn):
                self.candidates.append(event)
                self.switched_by[event.serial] = self.woken.get(event.model)

    def _is_awake(self, model: Model, given_back: bool = False) -> bool:
        """A layer that knows the difference is in train mode, and not because it was just asked.
        `given_back`: the loop sets eval mode itself, and the modes of before after it: a `train()`
        inside is nothing that the training needs."""
        family = list(model.family())
        if not given_back and any(member in self.asked for member in family):
            return False
        known = [member for member in family if may_switch(member)]
        return not known or any(member.training is True for member in known)

    def _woke_within(self, event: ModelForward, before: Turn | None, turn: Turn) -> bool:
        """The first batches ran in eval mode, until its own `train()` after the forward."""
        last = next((each for each in self.switched[::-1] if each.model.covers(event.model)), None)
        return (
            before is not None
            and before.loop is turn.loop
            and before != turn
            and last is not None
            and last.training is True
            and last.turns[-1:] == (before,)
            and last.guards <= event.guards
            and last.windows == event.windows
        )

    def on_state_dict_loaded(self, event: StateDictLoaded) -> None:
        self.predictions.load(event)
        if isinstance(event.thing, Model):
            self.loaded.append(event.thing)

    def on_loss(self, event: Loss) -> None:
        self.losses.update(event.turns)

    def on_backward(self, event: Backward) -> None:
        self.forwards.through(event)
        self.learning.update(loops_of(event))
        self.asked.clear()

    def on_grad_taken(self, event: GradTaken) -> None:
        self.forwards.through(event)
        self.learning.update(loops_of(event))

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        self.learning.update(loops_of(event))
        self.steps.append(event)

    def on_manual_update(self, event: ManualUpdate) -> None:
        first = any(each.function.endswith("__init__") for each in (*event.stack, event.place))
        (self.filled if first else self.updated).update(event.models)

    def on_ended(self, event: Ended) -> None:
        self.whole_program = event.whole_program
        if event.whole_program:
            self._settle_other_files()
        reported: set[Loop] = set()
        for forward in self.candidates:
            turn = pass_of(forward)
            if turn is None:  # of a loop that turned out to be one over epochs
                continue
            if turn.loop in reported or turn.loop in self.learning or turn.loop in self.repeated:
                continue
            if forward.serial in self.forwards.used or self._is_given_its_mode(forward):
                continue
            if self._validates(forward, turn) and self._matters(forward):
                reported.add(turn.loop)
                self._report(forward)
        trains = self.steps or self.forwards.used or self.updated or event.unread_backward
        named: set[Model] = set()
        for forward in [] if trains else self.predictions.in_train_mode(event):
            if forward.model not in named and not self._drops_nothing(forward):
                named.add(forward.model)
                self._report_prediction(forward)
        for forward, loop in self.sampling.passes(self.forwards.used):
            # What it has dropped on the way is part of all that follows.
            if loop not in reported and switches(forward.model) and self._matters(forward):
                self._report_sampling(forward)
        self._check_at_once(reported)

    def _settle_other_files(self) -> None:
        """The modes of networks without dropout and batch norm make no difference."""
        calls = {(each.place, each.model) for each in self.forwards.by_serial.values()}
        for place, model in calls:
            if switches(model) is False:
                self.settle(place)

    def _check_at_once(self, reported: set[Loop]) -> None:
        places: set[Location] = set()
        for forward, place in self.at_once:
            turn = pass_of(forward)
            if turn is not None and (turn.loop not in self.learning or turn.loop in reported):
                continue  # a loop of the validation's own
            by_data = any(names_validation(each) for each in forward.given)
            if not by_data and any(_is_within(step, place) for step in self.steps):
                continue  # `def evaluate(folds)` trains as well
            if (
                place not in places
                and forward.serial not in self.forwards.used
                and switches(forward.model)
                and self._matters(forward)
                and self._has_learned(forward)
                and not self._is_given_its_mode(forward)
            ):
                places.add(place)
                self._report(forward, place)

    def _has_learned(self, forward: ModelForward) -> bool:
        """A look at the shapes that a new network returns, before it trains, validates nothing."""
        steps = [each for each in self.steps if may_train(each.optimizer, forward.model)]
        filled = any(each.shares_parameters(forward.model) for each in self.loaded)
        first = min((each.serial for each in steps), default=0)
        return filled or forward.model.pretrained or first < forward.serial

    def _is_given_its_mode(self, forward: ModelForward) -> bool:
        """An argument says that it does not train here, which says that it does where it is."""
        trained = (self.forwards.by_serial.get(serial) for serial in self.forwards.used)
        return any(
            (name, not value) in each.flags and each.model.shares_parameters(forward.model)
            for each in trained
            if each is not None
            for name, value in forward.flags
        )

    def _validates(self, forward: ModelForward, turn: Turn) -> bool:
        if is_trial(forward):
            return False
        if named_validation(forward):
            return forward.result_used
        return not forward.grad and turn in self.losses

    def _matters(self, forward: ModelForward) -> bool:
        changed = self.updated
        if self.predictions.is_trained(forward.model):  # in other programs
            changed = changed | self.filled
        by_hand = any(model.shares_parameters(forward.model) for model in changed)
        if not by_hand and not any(may_train(step.optimizer, forward.model) for step in self.steps):
            return False
        dependent = switches(forward.model)
        if dependent and self._drops_nothing(forward):
            return False
        if dependent is None:
            # Its class may have neither: that the program has use for eval mode says more.
            given = not forward.model.kind and not self.whole_program
            strict = given or is_of_library(forward.model)
            wanted = (False,) if strict else (False, True, None)
            return any(
                each.training in wanted and each.model.shares_parameters(forward.model)
                for each in self.switched
            )
        return dependent

    def _drops_nothing(self, forward: ModelForward) -> bool:
        """All that depends on the mode are dropout layers that its methods have, and this pass
        calls none: an option is off, or an argument says that it does not train."""
        model = forward.model
        parts = [(each, child) for each in model.family() for child in each.children.values()]
        layers = [
            each for each in parts if each[1].kind.rpartition(".")[2] in MODE_DEPENDENT_LAYERS
        ]
        # A later turn's call may not have been read again: what the same line called counts.
        same = [
            each
            for each in self.forwards.by_serial.values()
            if each.place == forward.place and each.model is model
        ]
        if not any(each.heeds_mode for each in (forward, *same)):
            return True
        used = {layer for each in same for layer in each.switched_on}
        return (
            bool(layers)
            and all(turn.loop.simulated for turn in forward.turns)
            and not any(member.asks_mode or not member.complete for member in model.family())
            and all(
                holder.cls is not None and layer.kind == "torch.nn.Dropout" and layer not in used
                for holder, layer in layers
            )
        )

    def _report(self, forward: ModelForward, place: Location | None = None) -> None:
        switch = self.switched_by.get(forward.serial)
        by_its_own = switch is not None and switch.place.function.endswith(".train")
        if switch is not None and not by_its_own:
            self._report_switch(forward, switch)
            return
        name = called(forward)
        what = "call" if place is not None or pass_of(forward) is None else "loop"
        if place is not None and place != forward.place:
            name = [forward.model, *wholes(forward.model)][-1].name or name
        aside = ", since `training = False` does not reach its layers"
        aside = aside if forward.serial in self.alone else ""
        related = [(switch.place, "`eval()` calls this, which loses the mode")] if switch else []
        self.report(
            place or forward.place,
            f"`{name}` validates in train mode{aside}:"
            f" {_effects(forward, 'the validation batches')}.",
            fix="Pass the mode on: `super().train(mode)`."
            if related
            else _advice(forward, name, what),
            severity=severity_of(forward.model),
            related=related,
            remedies=[] if related else self._remedy(forward),
        )

    def _report_switch(self, forward: ModelForward, switch: ModeSet) -> None:
        name = called(forward)
        self.report(
            switch.place,
            f"This puts `{name}` into train mode for a validation that has just set eval mode:"
            f" {_effects(forward, 'the validation batches')}.",
            severity=severity_of(forward.model),
            related=[(forward.place, "validates in train mode")],
            fix="Leave the mode to the caller, and call `train()` where the training begins.",
        )

    def _report_sampling(self, forward: ModelForward) -> None:
        """At the call of the training that leads there, which is where the mode is to be set."""
        shared = max((_in_common(forward, step) for step in self.steps), default=0)
        place = [*forward.stack, forward.place][shared]
        inside = place != forward.place
        norm = "batch norm normalises with what is being made"
        name = (forward.model.name if inside else "") or called(forward)
        self.report(
            place,
            f"`{name}` samples in train mode:"
            f" {effects(forward.model, 'dropout is active', norm)}, at every step of the loop.",
            related=[(forward.place, "calls it again and again")] if inside else [],
            fix=f"Call `{name}.eval()` before {'this' if inside else 'the loop'}, and"
            f" `{name}.train()` after it.",
        )

    def _report_prediction(self, forward: ModelForward) -> None:
        name = called(forward)
        self.report(
            forward.place,
            f"`{name}` predicts in train mode: {_effects(forward, 'the current batch', 'it')}.",
            fix=f"Call `{name}.eval()` once its weights are loaded.",
        )

    def _remedy(self, forward: ModelForward) -> list[Remedy]:
        """`model.eval()` before the loop, where the training turns train mode on again itself."""
        turn, name = pass_of(forward), forward.spelled
        if turn is None or not name or name.partition(".")[0] in turn.loop.variables:
            return []
        if turn.loop.place.function != forward.place.function or turn.loop.framework:
            return []
        within = turn.loop.place
        later = [step for step in self.steps if step.serial > forward.serial]
        again = [
            each
            for each in self.switched
            if each.training is True
            and not each.guards
            and each.serial > forward.serial
            and each.model.covers(forward.model)
        ]
        if later and not (again and again[0].serial < later[0].serial):
            return []
        if self.updated and not again:
            return []  # by hand, before it or after
        return [Insert(f"{name}.eval()", within, "before")]


def _effects(forward: ModelForward, what: str, them: str = "them") -> str:
    norm = f"batch norm normalises with {what} and adds {them} to its running statistics"
    return effects(forward.model, "dropout is active", norm)


def _is_within(event: Event, place: Location) -> bool:
    """It happened in the function that a place is in, or in what that has called."""
    frames = (*event.stack, event.place)
    return any((each.path, each.function) == (place.path, place.function) for each in frames)


def _same_frame(one: Event, two: Event) -> bool:
    return one.stack == two.stack and one.place.function == two.place.function


def _in_common(one: Event, two: Event) -> int:
    """The calls that both are in."""
    pairs = enumerate(zip(one.stack, two.stack, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one.stack), len(two.stack)))


def _advice(forward: ModelForward, name: str, what: str) -> str:
    framework = forward.turn.loop.framework if forward.turn is not None else ""
    if framework == "Lightning":
        return "Remove the `train()` that comes before: Lightning sets eval mode for this loop."
    if framework:
        return f"Call `{name}.eval()` before the loop over these batches, which {framework} runs."
    return f"Call `{name}.eval()` before this {what}, and `{name}.train()` after it."
