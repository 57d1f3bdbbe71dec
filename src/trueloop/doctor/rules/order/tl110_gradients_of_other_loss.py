"""The discriminator's step also applies gradients of the generator's loss.

## What it does

Finds a pair of adversaries with an optimizer each, where the `backward()` of the one's loss leaves
gradients in the other, and these are still there when the other steps.

## Why it breaks training

The generator's loss goes through the discriminator, so its `backward()` adds gradients to the
discriminator's parameters too. They point the wrong way: they make the discriminator take generated
samples for real ones. If they are not cleared before the discriminator's own `backward()`, its step
applies the sum of both. The discriminator works against itself, and its loss still looks plausible.

## Wrong

```python
optimizer_g.zero_grad()
optimizer_d.zero_grad()
g_loss = bce(discriminator(generator(noise)), real_labels)
g_loss.backward()
optimizer_g.step()

d_loss = bce(discriminator(images), real_labels) + bce(discriminator(fakes), fake_labels)
d_loss.backward()
optimizer_d.step()
```

## Right

```python
optimizer_g.zero_grad()
g_loss = bce(discriminator(generator(noise)), real_labels)
g_loss.backward()
optimizer_g.step()

optimizer_d.zero_grad()
d_loss = bce(discriminator(images), real_labels) + bce(discriminator(fakes), fake_labels)
d_loss.backward()
optimizer_d.step()
```

## Sources

- PyTorch,
  [DCGAN tutorial](https://docs.pytorch.org/tutorials/beginner/dcgan_faces_tutorial.html): the
  discriminator's gradients are cleared before its own losses, in each turn
- PyTorch,
  [Optimizer.zero_grad](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html):
  gradients stay until they are reset

## How it is detected

Two optimizers have different parameters. One loss reaches both: the second network was called on
the output of the first. A different loss reaches only the second network, over two or more of its
calls, or over a batch and targets that are both put together from parts. The second optimizer steps
on the gradients of both losses, with no clearing in between; the first optimizer has stepped
between them, or they belong to different turns. Not reported: gradients that are cleared, edited or
frozen (`requires_grad_(False)`), losses whose gradients are added up before any step, a loss that
feeds an encoder and its decoder and steps both, and closures.
"""

from __future__ import annotations

from trueloop.doctor.model.events import (
    Backward,
    Event,
    FlagsSet,
    Loss,
    ModelForward,
    OptimizerStep,
    ZeroGrad,
)
from trueloop.doctor.model.known_values import Sequence
from trueloop.doctor.model.things import Criterion, Model, Optimizer, Tensor
from trueloop.doctor.rules.order.tl102_missing_zero_grad import is_plain
from trueloop.doctor.rules.shared.step_order import (
    StepRule,
    backwards,
    disjoint,
    has_parameters_of,
    named,
    relieves,
    same_turn,
)


class GradientsOfOtherLoss(StepRule):
    code = "TL110"

    def __init__(self) -> None:
        super().__init__()
        self._frozen: list[Model] = []
        """Modules whose gradients the program switches off at times."""
        self._of_halves: set[Criterion] = set()
        """Loss functions whose targets were put together: ones and zeros."""

    def on_loss(self, event: Loss) -> None:
        if _is_put_together(event.target):
            self._of_halves.add(event.criterion)

    def on_flags_set(self, event: FlagsSet) -> None:
        if event.requires_grad is not True and event.model not in self._frozen:
            self._frozen.append(event.model)

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        mine = event.optimizer
        others = [each for each in self.timeline.optimizers if disjoint(each, mine)]
        if event.closure or not others or not is_plain(mine):
            return
        if any(has_parameters_of(mine, each) for each in self._frozen):
            return
        window = self.window(mine)
        fed = [each for each in backwards(window) if self.feeds(each, mine)]
        for other in others:
            foreign = [each for each in fed if self._is_foreign(each, mine, other)]
            own = [each for each in fed if feeds_not(each, other)]
            if foreign and own and self._takes_both(own, mine):
                self._judge(event, window, foreign[-1], own[-1], other)

    def _is_foreign(self, event: Backward, mine: Optimizer, other: Optimizer) -> bool:
        """It feeds both, and `mine` was called on what `other`'s network gave."""
        return self.feeds(event, other) and any(
            has_parameters_of(mine, call.model)
            and any(
                isinstance(value, Tensor)
                and any(has_parameters_of(other, model) for model in value.models)
                for value in call.inputs
            )
            for call in self._calls([event])
        )

    def _calls(self, events: list[Backward]) -> list[ModelForward]:
        """The calls of modules that the losses went through."""
        serials = {serial for each in events if each.loss for serial in each.loss.forwards}
        return [
            each
            for each in self.timeline.events
            if isinstance(each, ModelForward) and each.serial in serials
        ]

    def _takes_both(self, events: list[Backward], optimizer: Optimizer) -> bool:
        """The loss is over two kinds of samples: two calls of the network, or one of a batch that
        is put together, as its targets are."""
        calls = [each for each in self._calls(events) if has_parameters_of(optimizer, each.model)]
        if len(calls) > 1:
            return True
        together = any(_is_put_together(value) for each in calls for value in each.inputs)
        criteria = {each for event in events if event.loss for each in event.loss.criteria}
        return together and not criteria.isdisjoint(self._of_halves)

    def _judge(
        self, step: OptimizerStep, window: list[Event], foreign: Backward, own: Backward,
        other: Optimizer,
    ) -> None:  # fmt: skip
        mine = step.optimizer
        first = min(foreign.serial, own.serial)
        since = [each for each in window if each.serial > first]
        if any(relieves(each, mine) for each in since) or step.windows != own.windows:
            return
        if not any(isinstance(each, ZeroGrad) and self.clears(each, mine) for each in window):
            return  # TL102
        between = any(
            isinstance(each, OptimizerStep)
            and each.optimizer is other
            and foreign.serial < each.serial < own.serial
            for each in window
        )
        stale = own.serial < foreign.serial and not same_turn(own, foreign)
        if not between and not stale:
            return
        name = named(mine, step.spelled)
        self.report(
            own.place if between else step.place,
            f"{name[:1].upper()}{name[1:]} also applies the gradients of {named(other)}'s loss:"
            " its `backward()` goes through both networks, and nothing clears them here. The two"
            " losses pull in opposite directions.",
            related=[
                (foreign.place, "adds gradients to both networks"),
                (step.place, "applies the sum") if between else (own.place, "its own loss"),
            ],
            fix=f"Call `{step.spelled or mine.name or 'optimizer'}.zero_grad()` after that"
            " `backward()` and before this network's own loss; step after its own `backward()`.",
        )


def _is_put_together(value: object) -> bool:
    """`torch.cat([real, fake])`."""
    parts = value.terms if isinstance(value, Tensor) else None
    return isinstance(parts, Sequence) and len(parts.values) > 1


def feeds_not(event: Backward, optimizer: Optimizer) -> bool:
    """The loss certainly does not reach the optimizer's parameters."""
    loss = event.loss
    return (
        loss is not None
        and loss.graph is True
        and bool(loss.models)
        and not any(has_parameters_of(optimizer, model) for model in loss.models)
    )
