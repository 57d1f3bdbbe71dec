"""An optimizer is cleared and stepped in every iteration, but no `backward()` reaches it.

## What it does

Finds a training loop that calls the model, clears the gradients and steps the optimizer, while no
`backward()` in the program computes a gradient for its parameters.

## Why it breaks training

A `step()` skips parameters without a gradient. The loop computes a loss and takes the time of a
forward pass, but the model keeps its initial weights. `loss.backward` without brackets does
nothing. A loss that was turned into a number and back (`.item()`, `torch.tensor(loss)`) has lost
its graph: `requires_grad=True` on it stops the error that torch raises, and `backward()` then ends
at that number. Nothing raises; the loss varies around its first value.

## Wrong

```python
for inputs, targets in loader:
    optimizer.zero_grad()
    loss = criterion(model(inputs), targets)
    optimizer.step()
```

## Right

```python
for inputs, targets in loader:
    optimizer.zero_grad()
    loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.step()
```

## Sources

- PyTorch, [Optimizing Model
  Parameters](https://docs.pytorch.org/tutorials/beginner/basics/optimization_tutorial.html): a
  training loop clears the gradients, calls `loss.backward()`, and then steps
- PyTorch, [Autograd
  mechanics](https://docs.pytorch.org/docs/stable/notes/autograd.html#setting-requires-grad): a leaf
  that requires a gradient is where the graph begins

## How it is detected

At the end of a run: in several iterations of a loop a model is called, an optimizer of that model
is cleared and steps, and no `backward()` anywhere can reach its parameters, or only losses of other
networks, whose gradients are cleared before each step. The same for one of several steps in an
iteration, where all gradients are applied by the others. In a running program, none of its
parameters had a gradient at any step. Not reported: gradients of parameters that are written by
hand or, in source, taken by `autograd.grad`, losses or optimizers that are passed to unread code
(it may call `backward()`), code with a `backward` that the reader did not come to (other than in
the branch for a different option), and optimizer classes with their own `step()`.
"""

from __future__ import annotations

import re

from trueloop.doctor.model.events import (
    Backward,
    Ended,
    Event,
    GradTaken,
    GraphEscaped,
    LoopLeft,
    ModelForward,
    NotCalled,
    OptimizerStep,
    SamplingGap,
    ZeroGrad,
)
from trueloop.doctor.model.findings import Location, Replace
from trueloop.doctor.model.things import Model, Optimizer
from trueloop.doctor.rules.order.tl102_missing_zero_grad import is_plain
from trueloop.doctor.rules.shared.step_order import (
    LEAVES_ALONE,
    StepRule,
    backwards,
    clears,
    feeds,
    has_parameters_of,
    inside,
    micro,
    named,
    supplies,
)

_TURNS = 2
_BY_ITSELF = re.compile(r"back_?(ward|prop)")
"""An argument that makes a network compute its gradients in `forward`."""


class StepWithoutBackward(StepRule):
    code = "TL108"

    def __init__(self) -> None:
        super().__init__()
        self._forwards: list[ModelForward] = []
        self._by_a_test: set[Model] = set()
        """Models that an open condition sends through `no_grad`."""
        self._recorded: set[Model] = set()
        """Models that ran with gradients."""
        self._unsure = False
        """A gradient may come from elsewhere."""
        self._is_taken = False
        """So may one that was returned; whether it was written is seen in a running program."""
        self._escapes: list[GraphEscaped] = []
        self._fed: set[Optimizer] = set()
        """They had a gradient at some time."""
        self._reached: set[Optimizer] = set()
        """A backward may have computed gradients for them."""
        self._reached_always: set[Optimizer] = set()
        """So may one that runs whatever the options are."""
        self._named: NotCalled | None = None
        self._live = False
        """Gradients themselves are seen, at each step."""

    def on_grad_taken(self, event: GradTaken) -> None:
        self._is_taken |= event.of_parameters

    def on_graph_escaped(self, event: GraphEscaped) -> None:
        if not LEAVES_ALONE.search(event.callee):
            self._escapes.append(event)

    def on_not_called(self, event: NotCalled) -> None:
        if event.method == "backward":
            self._named = event

    def on_model_forward(self, event: ModelForward) -> None:
        self._unsure |= any(value and _BY_ITSELF.search(name) for name, value in event.flags)
        self._forwards.append(event)
        del self._forwards[:-64]
        if event.grad:
            self._recorded.add(event.model)
        elif event.guards:
            self._by_a_test.add(event.model)

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        self._live = event.applied is not None
        if event.applied:
            self._fed.add(event.optimizer)
            self.refute(event.place)

    def on_backward(self, event: Backward) -> None:
        self._unsure |= event.create_graph is True  # a later loss may go through its gradients
        for optimizer in self.timeline.optimizers:
            known = self._reached if event.guards else self._reached_always
            if optimizer not in known and self._reaches(event, optimizer):
                known.add(optimizer)
                self._reached.add(optimizer)
            if optimizer not in self._fed and feeds(event, optimizer):
                self._fed.add(optimizer)  # and cleared, where a step found nothing: TL101

    def on_sampling_gap(self, event: SamplingGap) -> None:
        """The timeline forgets what was before it."""
        self._check()

    def on_loop_left(self, event: LoopLeft) -> None:
        """The outermost loop is over: a run may be too long to be read to its end."""
        if not event.turns and not event.unread_backward and self.has_more():
            self._check()

    def on_ended(self, event: Ended) -> None:
        if not self._live:
            self._refute_fed()
        if not event.unread_backward:
            self._check()

    def _refute_fed(self) -> None:
        """A step that finds gradients here is right, though other options leave their loss out."""
        first: dict[Location, OptimizerStep] = {}
        for each in self.timeline.events:
            if isinstance(each, OptimizerStep) and each.optimizer in self._reached_always:
                first.setdefault(each.place, each)
        for place, step in first.items():
            if not self._finds_nothing(step):
                self.refute(place)

    def _check(self) -> None:
        if self._unsure or (self._is_taken and not self._live):
            return
        for optimizer in self.timeline.optimizers:
            if not is_plain(optimizer) or optimizer.frozen_groups:
                continue  # what is frozen has no gradient: TL309
            step = self._never_fed(optimizer) or self._fed_by_others(optimizer)
            harm = "its parameters: they keep their initial values."
            if step is None:
                step = self._fed_elsewhere(optimizer)
                harm = "its parameters before it, as for its other step: it changes nothing."
            if step is not None and not any(_may_differentiate(e, step) for e in self._escapes):
                self._report(step, harm)

    def _never_fed(self, optimizer: Optimizer) -> OptimizerStep | None:
        """Its step, where nothing in the program computes a gradient for it."""
        if optimizer in self._fed or (optimizer in self._reached and not self._live):
            return None
        if any(has_parameters_of(optimizer, each) for each in self._unclear()):
            return None
        if any(self._may_supply(each, optimizer) for each in self.timeline.events):
            return None
        return self._empty(optimizer)

    def _unclear(self) -> list[Model]:
        """Models that may learn where an open condition is false."""
        return [
            each
            for each in self._by_a_test
            if not any(each.shares_parameters(other) for other in self._recorded)
        ]

    def _fed_by_others(self, optimizer: Optimizer) -> OptimizerStep | None:
        """Its step, where only other networks' losses reach its parameters, and are cleared before
        each step: a discriminator without its own backward."""
        events = self.timeline.events
        reaching = [each for each in backwards(events) if feeds(each, optimizer) is not False]
        if self._live or not reaching:
            return None
        step = self._empty(optimizer)
        if step is None:
            return None
        steps = _last_steps(events)
        if not all(_is_applied(each, steps, optimizer) for each in reaching):
            return None  # its own backward is there, but elsewhere: TL103
        again = [
            each
            for each in events
            if isinstance(each, OptimizerStep)
            and each.optimizer is optimizer
            and each.place == step.place
        ]
        return step if all(map(self._finds_nothing, again)) else None

    def _fed_elsewhere(self, optimizer: Optimizer) -> OptimizerStep | None:
        """One of its steps in an iteration, where its gradients are all applied by its other steps
        and cleared: a loss without its backward beside one that has it."""
        if self._live or not optimizer.known:
            return None
        places: dict[Location, list[OptimizerStep]] = {}
        for each in self.timeline.events:
            if isinstance(each, OptimizerStep) and each.optimizer is optimizer:
                places.setdefault(each.place, []).append(each)
        if len(places) < 2:
            return None
        empty = [steps for steps in places.values() if all(map(self._finds_nothing, steps))]
        for place in places.keys() - {steps[0].place for steps in empty}:
            self.refute(place)
        suspects = [steps[0] for steps in empty if len({micro(each) for each in steps}) >= _TURNS]
        if len(empty) == len(places) or not suspects:
            return None
        return next((each for each in suspects if self._has_idle_forward(each)), None)

    def _has_idle_forward(self, step: OptimizerStep) -> bool:
        """In its turn a model of the optimizer has an output that no backward goes through."""
        losses = [e.loss for e in backwards(self.timeline.events) if e.loss is not None]
        return any(
            each.result_used
            and each.serial < step.serial
            and micro(each) == micro(step)
            and has_parameters_of(step.optimizer, each.model)
            and not any(each.serial in loss.forwards for loss in losses)
            for each in self._forwards
        )

    def _finds_nothing(self, step: OptimizerStep) -> bool:
        """Between the clearing and the step of one turn nothing computes a gradient."""
        turn, optimizer = micro(step), step.optimizer
        before = [
            each
            for each in self.timeline.events
            if turn in each.turns and each.serial < step.serial
        ]
        cleared = [
            position
            for position, each in enumerate(before)
            if isinstance(each, ZeroGrad)
            and self.clears(each, optimizer)
            and each.guards <= step.guards
            and {*each.windows} <= {*step.windows}
        ]
        if step.closure or not cleared:
            return False
        earlier, later = before[: cleared[-1]], before[cleared[-1] :]
        if any(self._may_supply(each, optimizer) for each in later):
            return False
        steps = _last_steps(earlier)
        return all(_is_applied(each, steps, optimizer, by_itself=True) for each in earlier)

    def _reaches(self, event: Backward, optimizer: Optimizer) -> bool:
        """Its loss may lead to the optimizer's parameters. Where it leads to a network that no
        optimizer steps (a loss module, mostly), the way to the others may not have been read."""
        if _may_reach(event, optimizer) or self._feeds_another(event, optimizer):
            return True
        return not _is_leaf(event) and any(
            not any(has_parameters_of(each, model) for each in self.timeline.optimizers)
            for model in (event.loss.models if event.loss is not None else ())
        )

    def _feeds_another(self, event: Backward, optimizer: Optimizer) -> bool:
        """The output of its model goes into a model of the loss: the way through that one may not
        have been read."""
        inner = set(event.loss.forwards) if event.loss is not None else set[int]()
        for each in reversed(self._forwards):
            if each.serial in inner:
                inner |= each.fed_with
                if has_parameters_of(optimizer, each.model):
                    return True
        return False

    def _may_supply(self, event: Event, optimizer: Optimizer) -> bool:
        if isinstance(event, Backward):
            return feeds(event, optimizer) or (not self._live and self._reaches(event, optimizer))
        return supplies(event, optimizer)

    def _empty(self, optimizer: Optimizer) -> OptimizerStep | None:
        """Its step in a loop that calls the model and clears the gradients."""
        steps = [
            each
            for each in self.timeline.events
            if isinstance(each, OptimizerStep) and each.optimizer is optimizer
        ]
        for step in steps:
            again = [each for each in steps if each.place == step.place]
            # Live, a turn that is one call of `step(closure)` cannot be told from the next.
            count = len(again) if step.closure else len({micro(each) for each in again})
            if micro(step) is None or count < _TURNS:
                continue
            always = frozenset.intersection(*(each.guards for each in again))
            if self._is_called(step, always) and self._is_cleared(step):
                return step
        return None

    def _is_cleared(self, step: OptimizerStep) -> bool:
        return any(
            isinstance(each, ZeroGrad)
            and each.target is not None
            and clears(each, step.optimizer) is not False
            and inside(each, micro(step))
            for each in self.timeline.events
        )

    def _is_called(self, step: OptimizerStep, always: frozenset[str]) -> bool:
        """The optimizer's model goes forward in the turn of the step, or in its closure. `always`:
        the conditions of the step that do not change from turn to turn."""
        return any(
            each.result_used
            and each.serial < step.serial
            and each.guards >= always
            and micro(step) in each.turns
            and (
                has_parameters_of(step.optimizer, each.model)
                or (not self._live and not step.optimizer.models and self.alone(step.optimizer))
            )
            for each in self._forwards
        )

    def _report(self, step: OptimizerStep, harm: str) -> None:
        name = named(step.optimizer, step.spelled)
        lost = [each for each in self.timeline.events if isinstance(each, Backward)][-1:]
        self.report(
            step.place,
            f"{name[:1].upper()}{name[1:]} steps in every iteration, but no `backward()` computes"
            f" gradients for {harm}",
            related=[(each.place, "does not reach these parameters") for each in lost],
            remedies=[Replace(self._named.place, "{}()")] if self._named else [],
            fix=_remedy(step),
        )


def _remedy(step: OptimizerStep) -> str:
    turn = micro(step)
    if turn is not None and turn.loop.framework == "Trainer":
        return (
            "Call `self.accelerator.backward(loss)` in `training_step`: the Trainer clips, steps"
            " and clears, but leaves the backward to this method."
        )
    return "Call `loss.backward()` before `step()`, on the loss that the model's output went into."


def _last_steps(events: list[Event]) -> list[OptimizerStep]:
    """One for each optimizer."""
    return [*{each.optimizer: each for each in events if isinstance(each, OptimizerStep)}.values()]


def _is_applied(
    event: Event, steps: list[OptimizerStep], optimizer: Optimizer, *, by_itself: bool = False
) -> bool:
    """No gradients of the optimizer come from it (TL101, where they are cleared), or a different
    optimizer stepped with them; or it has done so `by_itself`. `steps`: the last of each."""
    if not isinstance(event, Backward) or feeds(event, optimizer) is False:
        return True
    return any(
        (by_itself or each.optimizer is not optimizer)
        and each.serial > event.serial
        and feeds(event, each.optimizer)
        for each in steps
    )


def _may_differentiate(escape: GraphEscaped, step: OptimizerStep) -> bool:
    """Code that cannot be read got the graph of the optimizer's model, in a loop of the step."""
    if not any(inside(escape, turn) for turn in step.turns):
        return False
    by_name = escape.callee.rpartition(".")[2] == "backward"  # and elsewhere, where not here
    if not (by_name or escape.guards <= step.guards):
        return False  # not before each step
    if not {*escape.windows} <= {*step.windows}:
        return False
    models = escape.models
    return not models or any(has_parameters_of(step.optimizer, model) for model in models)


def _may_reach(event: Backward, optimizer: Optimizer) -> bool:
    """A backward may compute gradients that the optimizer holds; not where its loss is a leaf."""
    if feeds(event, optimizer) is False:
        return False
    return not _is_leaf(event) or event.loss in optimizer.tensors


def _is_leaf(event: Backward) -> bool:
    """Its loss has no graph: gradients were switched on for the loss itself."""
    loss = event.loss
    return loss is not None and loss.requires_grad and loss.graph is False
