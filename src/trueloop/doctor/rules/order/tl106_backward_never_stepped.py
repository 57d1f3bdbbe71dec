"""Gradients are computed for every batch, but no optimizer steps.

## What it does

Finds a loop over batches with a `backward()` whose gradients belong to an optimizer that never
steps, in this loop or anywhere else in the program.

## Why it breaks training

The parameters keep their initial values. The loop takes as long as a real one, the printed loss
varies around its first value, and accuracy stays at chance. Of two networks one learns and the
other does not: the discriminator wins at once.

## Wrong

```python
for inputs, targets in loader:
    optimizer.zero_grad()
    loss = criterion(model(inputs), targets)
    loss.backward()
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

- PyTorch,
  [torch.optim](https://docs.pytorch.org/docs/stable/optim.html#taking-an-optimization-step):
  `step()` is what updates the parameters.
- PyTorch, [Optimizing Model
  Parameters](https://docs.pytorch.org/tutorials/beginner/basics/optimization_tutorial.html)

## How it is detected

At the end of a whole run: an optimizer was created for a model, `backward()` feeds it in every
iteration, and neither it nor an optimizer of the same parameters stepped afterwards. If a function
receives its optimizer, it must also clear that optimizer's gradients in the loop. Where an
optimizer steps on several losses in an iteration, each `backward()` is followed on its own: it is
reported if its gradients are always cleared before a step. Where one `backward()` feeds several
optimizers with different parameters, each that is cleared has to step, and so has each whose `step`
no file of the program reads, not even in a comment. In a running program, an optimizer is reported
whose gradients are cleared in every iteration and that has not stepped by the end. Not reported:
gradients that are read or changed by hand (Fisher information, attacks, manual updates; only
logging them does not count, nor does asking whether there are any, nor measuring their norm where a
second optimizer steps), models in eval mode (maps of attention), gradients of an input that the
program asks for (saliency), hooks that step inside `backward()`, optimizers passed to code that
cannot be read, programs without an optimizer, and a step in a branch that only some runs take.
"""

from __future__ import annotations

from collections.abc import Container

from trueloop.doctor.model.events import (
    Backward,
    Ended,
    EscapedToUnknown,
    Event,
    GradEdited,
    GradRead,
    GradTaken,
    LoopLeft,
    Made,
    ModeSet,
    OptimizerStep,
    ZeroGrad,
)
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.things import Model, Optimizer
from trueloop.doctor.rules.order.tl102_missing_zero_grad import is_plain
from trueloop.doctor.rules.shared.evidence import called_as_part
from trueloop.doctor.rules.shared.gradient_uses import Use, by_hand, use_of
from trueloop.doctor.rules.shared.step_order import (
    StepRule,
    backwards,
    clears,
    disjoint,
    feeds,
    has_parameters_of,
    inside,
    may_change_gradients,
    micro,
    named,
)

_MEANT = 5
"""An optimizer that has not stepped after so many updates of a different one never will."""


class BackwardNeverStepped(StepRule):
    code = "TL106"

    def __init__(self) -> None:
        super().__init__()
        self._made: list[Optimizer] = []
        self._live = False
        self._reported: list[tuple[Optimizer, Backward]] = []
        """Before the program was over: a few passes to warm up may come before it trains."""
        self._evaluated: set[Model] = set()
        """Models that the program has set to eval mode, and not to train mode again."""
        self._looked_at: set[Location] = set()
        """Backwards through models in eval mode, or down to an input: a map of attention or
        saliency is wanted."""
        self._taken = False
        """`autograd.grad` was called since the last backward."""
        self._end: Ended | None = None
        self._waiting: dict[Optimizer, tuple[int, Backward, OptimizerStep]] = {}
        """Optimizers that have not stepped: in how many updates, and the last of these (live)."""

    def on_mode_set(self, event: ModeSet) -> None:
        if event.training is False:
            self._evaluated.add(event.model)
        else:
            self._evaluated = {each for each in self._evaluated if not each.covers(event.model)}

    def on_backward(self, event: Backward) -> None:
        models = event.loss.models if event.loss is not None else ()
        evaluated = any(each.covers(model) for each in self._evaluated for model in models)
        evaluated |= bool(self._evaluated) and not models  # of one that was not read
        # Where `autograd.grad` was called, a penalty has had the gradient of the input.
        if evaluated or (self._is_for_input(event) and not self._taken):
            self._looked_at.add(event.place)
        self._taken = False

    def on_grad_taken(self, event: GradTaken) -> None:
        self._taken = True

    def _is_for_input(self, event: Backward) -> bool:
        """It goes down to a tensor that asks for a gradient, and that no optimizer updates."""
        inputs = event.loss.inputs if event.loss is not None else frozenset()
        held = [each.tensors for each in self._known_optimizers()]
        return any(
            each.role != "parameter" and not any(each in tensors for tensors in held)
            for each in inputs
        )

    def on_made(self, event: Made) -> None:
        if isinstance(event.thing, Optimizer):
            self._made.append(event.thing)

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        self._live = event.applied is not None
        window = self.window(event.optimizer)
        fed = list(backwards(window))
        mine = [each for each in fed if feeds(each, event.optimizer) is not False]
        if self._live:
            self._note_waiting(event, fed)
        others = [each for each in self._known_optimizers() if each is not event.optimizer]
        cleared = max(
            (
                each.serial
                for each in window
                if isinstance(each, ZeroGrad) and self.clears(each, event.optimizer)
            ),
            default=0,
        )
        for backward in mine:
            if backward is not mine[-1]:
                if backward.serial < cleared or backward.place in self.refuted:
                    continue
                if any(self.feeds(backward, each) for each in others):
                    # The loss of a generator feeds its discriminator, too: that one's step is
                    # another.
                    continue
            self.refute(backward.place)
        for optimizer, backward in self._reported:
            if optimizer is event.optimizer:
                self.refute(backward.place)

    def _report_beside(self, lost: Backward, optimizer: Optimizer) -> None:
        """A second optimizer steps on the same backward, in every iteration: at that backward the
        finding is refuted, so it is reported where the first one is made."""
        others = [
            each
            for each in self.timeline.events
            if isinstance(each, OptimizerStep)
            and inside(each, micro(lost))
            and (each.guards, each.windows) == (lost.guards, lost.windows)
            and disjoint(each.optimizer, optimizer)
            and feeds(lost, each.optimizer)
        ]
        is_cleared = any(
            isinstance(each, ZeroGrad)
            and each.target is optimizer
            and not each.guards
            and inside(each, micro(lost))
            for each in self.timeline.events
        )
        is_meant = is_cleared or self._is_forgotten(optimizer)
        if others and is_meant and optimizer.known and is_plain(optimizer):
            happens = "computed and cleared" if is_cleared else "computed"
            self._report_waiting(optimizer, happens, lost, others[-1])

    def _report_waiting(
        self, optimizer: Optimizer, happens: str, lost: Backward, other: OptimizerStep
    ) -> None:
        name = named(optimizer)
        # One expression made both: `{name: Adam(part.parameters()) for name, part in ...}`.
        together = optimizer.made == other.optimizer.made
        if together and optimizer.models:
            name = f"the optimizer of {called_as_part(optimizer.models[0], 'one part')}"
        self.report(
            other.place if together else optimizer.made,
            f"{name[:1].upper()}{name[1:]} never steps: its gradients are {happens}"
            f" in every iteration, but only {named(other.optimizer, other.spelled)} steps. Its"
            " parameters keep their initial values.",
            related=[
                (lost.place, "computes the gradients"),
                (optimizer.made if together else other.place, "is made" if together else "steps"),
            ],
            fix="Call `step()` of each of them after `backward()`."
            if together
            else f"Call `{optimizer.name or 'optimizer'}.step()` after `backward()`.",
        )

    def _note_waiting(self, step: OptimizerStep, fed: list[Backward]) -> None:
        """In a running program: the optimizers that a backward of this update feeds, that are
        cleared and have not stepped yet."""
        for each in self._known_optimizers():
            if each.has_stepped is False and is_plain(each) and disjoint(each, step.optimizer):
                lost = next((one for one in fed if feeds(one, each)), None)
                if lost is None or not self._is_cleared(each):
                    continue
                if feeds(lost, step.optimizer) or not self._is_used(lost, each):
                    updates = self._waiting[each][0] if each in self._waiting else 0
                    self._waiting[each] = updates + 1, lost, step

    def _is_forgotten(self, optimizer: Optimizer) -> bool:
        """The program was read to its end, and none of its files steps anything of that name."""
        end, name = self._end, optimizer.name.rpartition(".")[2]
        return (
            end is not None
            and not end.unread_backward
            and bool(name)
            and name not in end.stepped
            and not any(each[:1].isupper() for each in end.stepped)  # of a class: `SGD.step`
            and optimizer.complete
            and not optimizer.exposed
            and not any(
                isinstance(each, EscapedToUnknown) and optimizer in each.things
                for each in self.timeline.events
            )
        )

    def _known_optimizers(self) -> list[Optimizer]:
        return [
            *self.timeline.optimizers,
            *(each for each in self._made if each not in self.timeline.optimizers),
        ]

    def on_loop_left(self, event: LoopLeft) -> None:
        """The outermost loop is over: a run may be too long to be read to its end."""
        if not event.turns and self.has_more():
            self._check(whole_program=False)

    def on_ended(self, event: Ended) -> None:
        self._end = event
        self._check(whole_program=event.whole_program)
        reported = {each for each, lost in self._reported if lost.place not in self.refuted}
        for optimizer, (updates, lost, step) in self._waiting.items():
            if optimizer.has_stepped is not False or updates < _MEANT or optimizer in reported:
                continue
            if feeds(lost, step.optimizer):
                self._report_waiting(optimizer, "computed and cleared", lost, step)
            elif lost.place not in self._looked_at:
                self._report(lost, optimizer)

    def _check(self, *, whole_program: bool) -> None:
        stepped = self._stepped(whole_program=whole_program)
        cleared = {each.target for each in self.timeline.events if isinstance(each, ZeroGrad)}
        for event in self.timeline.events:
            if isinstance(event, OptimizerStep):
                self.refute(event.optimizer.made)
        for optimizer in self._known_optimizers():
            if any(_may_step_for(other, optimizer, cleared) for other in stepped):
                continue
            lost = self._lost(optimizer, whole_program=whole_program)
            if lost is None:
                continue
            if self._is_used(lost, optimizer):
                self.refute(lost.place)
            else:
                self._reported.append((optimizer, lost))
                self._report(lost, optimizer)
                if whole_program and not self._live and lost.place in self.refuted:
                    self._report_beside(lost, optimizer)
        if not self._live:
            self._check_each()

    def _check_each(self) -> None:
        """Of several backwards in an iteration, one whose gradients are cleared before any step."""
        events = self.timeline.events
        places: dict[Location, list[int]] = {}
        for at, event in enumerate(events):
            if isinstance(event, Backward) and micro(event) is not None:
                places.setdefault(event.place, []).append(at)
        for place, found in places.items():
            first = events[found[0]]
            assert isinstance(first, Backward)
            optimizer = next((o for o in self.timeline.optimizers if self._owns(o, first)), None)
            if optimizer is None or len({micro(events[at]) for at in found}) < 2:
                continue
            if any(_looks_at_gradients(each) and inside(each, micro(first)) for each in events):
                continue  # an attack: the gradient of an input is what it wants
            uses = {self._use(at) for at in found}
            if "applied" in uses:
                self.refute(place)
            elif "cleared" in uses and "unknown" not in uses and not self._may_act(optimizer):
                clear = self._clearing(found[0], optimizer)
                if clear is not None:
                    self._report_cleared(first, optimizer, clear)

    def _owns(self, optimizer: Optimizer, backward: Backward) -> bool:
        """It holds what the backward computes gradients for, and steps in the same loop."""
        return (
            optimizer.known
            and is_plain(optimizer)
            and bool(feeds(backward, optimizer))
            and any(
                isinstance(each, OptimizerStep)
                and each.optimizer is optimizer
                and not each.closure
                and inside(each, micro(backward))
                for each in self.timeline.events
            )
        )

    def _use(self, at: int) -> Use:
        backward = self.timeline.events[at]
        assert isinstance(backward, Backward)
        return use_of(backward, self.timeline.events, at, self.timeline.optimizers)

    def _may_act(self, optimizer: Optimizer) -> bool:
        """Code that cannot be read got hold of the optimizer, or hangs on backward."""
        return any(
            isinstance(each, EscapedToUnknown) and _stays(each, optimizer)
            for each in self.timeline.events
        )

    def _clearing(self, at: int, optimizer: Optimizer) -> ZeroGrad | None:
        """The event that clears the gradients; None where a step comes next, which should have had
        them (TL101), or where an optimizer that they do not reach steps on them (TL108)."""
        found: ZeroGrad | None = None
        meant = True
        for event in self.timeline.events[at + 1 :]:
            if found is None:
                if isinstance(event, ZeroGrad) and clears(event, optimizer):
                    found = event
                elif isinstance(event, OptimizerStep) and meant:
                    return None
                meant = meant and not isinstance(event, Backward)
            elif isinstance(event, OptimizerStep) and event.optimizer is optimizer:
                return None
            elif isinstance(event, Backward) and feeds(event, optimizer) is not False:
                return found
        return found

    def _report_cleared(self, backward: Backward, optimizer: Optimizer, clear: ZeroGrad) -> None:
        name = named(optimizer)
        self.report(
            backward.place,
            f"The gradients that this computes for {name} are cleared before it steps, in every"
            " iteration: this loss trains nothing.",
            related=[(clear.place, "clears them")],
            fix=f"Call `{optimizer.name or 'optimizer'}.step()` after this `backward()`, before the"
            " gradients are cleared.",
        )

    def _is_used(self, lost: Backward, optimizer: Optimizer) -> bool:
        """Gradients are looked at, or parameters changed, by other means than the optimizer."""
        first = next(each.serial for each in self.timeline.events if each.place == lost.place)
        edits = [each for each in self.timeline.events if isinstance(each, GradEdited)]
        edited = {each.place.line for each in edits}
        clips = {(each.place.path, each.place.function) for each in edits if each.how == "clipped"}
        for event in self.timeline.events:
            if event.serial < first:
                # Only what got hold of the optimizer, or hangs on backward, acts later on.
                if isinstance(event, EscapedToUnknown) and _stays(event, optimizer):
                    return True
            elif may_change_gradients(event, optimizer) or (
                by_hand(event, optimizer)
                and not (isinstance(event, GradRead) and self._is_only_looked_at(event))
                and event.place.line not in edited
                and (event.place.path, event.place.function) not in clips
            ):
                return True
        return False

    def _is_only_looked_at(self, event: GradRead) -> bool:
        """Nothing comes of it: it asks whether there is a gradient, or how large one is where an
        optimizer steps in the same turn."""
        return event.asked or (event.measured and self._steps_with(event))

    def _steps_with(self, event: Event) -> bool:
        return any(
            isinstance(each, OptimizerStep) and inside(event, micro(each))
            for each in self.timeline.events
        )

    def _stepped(self, *, whole_program: bool) -> list[Optimizer]:
        """Those that step, each once. In a whole program only what comes after a gradient counts: a
        single step before the loop applies nothing."""
        fed = False
        found: dict[Optimizer, None] = {}
        for event in self.timeline.events:
            fed = fed or isinstance(event, (Backward, GradEdited, EscapedToUnknown))
            if isinstance(event, OptimizerStep) and (fed or event.closure or not whole_program):
                found[event.optimizer] = None
        return [*found]

    def _is_cleared(self, optimizer: Optimizer) -> bool:
        return any(
            isinstance(event, ZeroGrad) and event.target is optimizer
            for event in self.timeline.events
        )

    def _lost(self, optimizer: Optimizer, *, whole_program: bool) -> Backward | None:
        """The backward whose gradients no optimizer applies, in several iterations of one loop."""
        fed = [
            each
            for each in backwards(self.timeline.events)
            if micro(each) is not None
            and each.place not in self._looked_at
            and self.feeds(each, optimizer)
        ]
        if not (whole_program and optimizer.known):
            cleared = [
                event
                for event in self.timeline.events
                if isinstance(event, ZeroGrad) and clears(event, optimizer)
            ]
            fed = [each for each in fed if any(inside(clear, micro(each)) for clear in cleared)]
        begins = max(
            (
                each.serial
                for each in self.timeline.events
                if isinstance(each, ZeroGrad) and each.target is optimizer
            ),
            default=0,
        )
        found = next((each for each in fed if each.serial > begins), fed[-1] if fed else None)
        if found is None:
            return None
        turns = {micro(each) for each in fed if each.place == found.place}
        return found if len(turns) >= 2 or found.windows else None

    def _report(self, backward: Backward, optimizer: Optimizer) -> None:
        name = named(optimizer)
        related = (
            [(optimizer.made, "is created here and never steps")] if optimizer.made.line else []
        )
        self.report(
            backward.place,
            f"Gradients for {name} are computed in every iteration, but {name} never"
            " steps: the parameters keep their initial values.",
            related=related,
            fix=f"Call `{optimizer.name or 'optimizer'}.step()` after `backward()`.",
        )


def _stays(event: EscapedToUnknown, optimizer: Optimizer) -> bool:
    return may_change_gradients(event, optimizer) and (
        "hook" in event.callee or any(thing is optimizer for thing in event.things)
    )


def _looks_at_gradients(event: Event) -> bool:
    return isinstance(event, GradRead) and not event.logged


def _may_step_for(other: Optimizer, optimizer: Optimizer, cleared: Container[object]) -> bool:
    """A step of `other` may update parameters of `optimizer`."""
    if other is optimizer:
        return True
    if disjoint(other, optimizer):
        return False
    if other.models and optimizer.models:
        return any(has_parameters_of(other, model) for model in optimizer.models)
    # Two that were handed in: each is cleared, so each is meant to be stepped.
    return not (other in cleared and optimizer in cleared)
