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
receives its optimizer, it must also clear that optimizer's gradients in the loop. Not reported:
gradients that are read or changed by hand (Fisher information, attacks, manual updates; only
logging them does not count), models in eval mode (maps of attention), hooks that step inside
`backward()`, optimizers passed to code that cannot be read, programs without an optimizer, and a
step in a branch that only some runs take.
"""

from __future__ import annotations

from trueloop.doctor.model.events import (
    Backward,
    Ended,
    EscapedToUnknown,
    Event,
    GradEdited,
    GradRead,
    LoopLeft,
    Made,
    ManualUpdate,
    ModeSet,
    OptimizerStep,
    ZeroGrad,
)
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.things import Model, Optimizer, Tensor
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


class BackwardNeverStepped(StepRule):
    code = "TL106"

    def __init__(self) -> None:
        super().__init__()
        self._made: list[Optimizer] = []
        self._evaluated: set[Model] = set()
        """Models that the program has set to eval mode, and not to train mode again."""
        self._looked_at: set[Location] = set()
        """Backwards through models in eval mode: a map of attention or saliency is wanted."""

    def on_mode_set(self, event: ModeSet) -> None:
        if event.training is False:
            self._evaluated.add(event.model)
        else:
            self._evaluated = {each for each in self._evaluated if not each.covers(event.model)}

    def on_backward(self, event: Backward) -> None:
        models = event.loss.models if event.loss is not None else ()
        if any(each.covers(model) for each in self._evaluated for model in models):
            self._looked_at.add(event.place)

    def on_made(self, event: Made) -> None:
        if isinstance(event.thing, Optimizer):
            self._made.append(event.thing)

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        fed = list(backwards(self.window(event.optimizer)))
        mine = [each for each in fed if feeds(each, event.optimizer) is not False]
        others = [each for each in self._known_optimizers() if each is not event.optimizer]
        for backward in mine:
            # The loss of a generator feeds its discriminator, too: that one's step is another.
            if backward is mine[-1] or not any(self.feeds(backward, each) for each in others):
                self.refute(backward.place)

    def _known_optimizers(self) -> list[Optimizer]:
        return [
            *self.timeline.optimizers,
            *(each for each in self._made if each not in self.timeline.optimizers),
        ]

    def on_loop_left(self, event: LoopLeft) -> None:
        """The outermost loop is over: a run may be too long to be read to its end."""
        if not event.turns:
            self._check(whole_program=False)

    def on_ended(self, event: Ended) -> None:
        self._check(whole_program=event.whole_program)

    def _check(self, *, whole_program: bool) -> None:
        stepped = self._stepped(whole_program=whole_program)
        for optimizer in self._known_optimizers():
            if any(self._may_step_for(other, optimizer) for other in stepped):
                continue
            lost = self._lost(optimizer, whole_program=whole_program)
            if lost is None:
                continue
            if self._is_used(lost, optimizer):
                self.refute(lost.place)
            else:
                self._report(lost, optimizer)

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
                _by_hand(event, optimizer)
                and event.place.line not in edited
                and (event.place.path, event.place.function) not in clips
            ):
                return True
        return False

    def _stepped(self, *, whole_program: bool) -> list[Optimizer]:
        """Those that step. In a whole program only what comes after a gradient counts: a single
        step before the loop applies nothing."""
        fed = False
        found: list[Optimizer] = []
        for event in self.timeline.events:
            fed = fed or isinstance(event, (Backward, GradEdited, EscapedToUnknown))
            if isinstance(event, OptimizerStep) and (fed or event.closure or not whole_program):
                found.append(event.optimizer)
        return found

    def _may_step_for(self, other: Optimizer, optimizer: Optimizer) -> bool:
        """A step of `other` may update parameters of `optimizer`."""
        if other is optimizer:
            return True
        if disjoint(other, optimizer):
            return False
        if other.models and optimizer.models:
            return any(has_parameters_of(other, model) for model in optimizer.models)
        # Two that were handed in: each is cleared, so each is meant to be stepped.
        return not (self._is_cleared(other) and self._is_cleared(optimizer))

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


def _by_hand(event: Event, optimizer: Optimizer) -> bool:
    """Gradients are read, or parameters are changed, without the optimizer."""
    if not isinstance(event, (GradRead, ManualUpdate)):
        return False
    if isinstance(event, GradRead) and event.logged:
        return False
    target = event.target
    if isinstance(target, Tensor) and target.role != "parameter":
        is_input = bool(target.role) or target.requires_grad
        return not is_input  # the gradient of an input: an attack, a saliency map
    if not isinstance(target, (Tensor, Optimizer)) or not target.models or not optimizer.models:
        return True
    return any(has_parameters_of(optimizer, model) for model in target.models)
