"""Gradients are clipped while they are still multiplied by the loss scale.

## What it does

Finds clipping between `scaler.scale(loss).backward()` and `scaler.step(optimizer)` without
`scaler.unscale_(optimizer)` before it.

## Why it breaks training

At that point every gradient is multiplied by the loss scale, 65536 at first. A limit of 1.0 cuts
the gradient to 1/65536 of the intended size; after the scaler has divided, the update is almost
zero with plain SGD, and smaller than `eps` with Adam. The effect changes with the scale. The loss
falls far too slowly, and logged norms are in the tens of thousands.

## Wrong

```python
scaler.scale(loss).backward()
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
scaler.step(optimizer)
scaler.update()
```

## Right

```python
scaler.scale(loss).backward()
scaler.unscale_(optimizer)
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
scaler.step(optimizer)
scaler.update()
```

## Sources

- PyTorch, [Automatic Mixed Precision examples, gradient
  clipping](https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-clipping): "If
  you attempted to clip without unscaling, the gradients' norm/maximum magnitude would also be
  scaled".
- Micikevicius et al., [Mixed Precision Training](https://arxiv.org/abs/1710.03740), 2018:
  gradients are unscaled before clipping and weight decay.

## How it is detected

Since the optimizer's last step: a scaled `backward()`, then clipping of its gradients without
`unscale_` in between, then a step through the scaler, or an `unscale_` that comes too late. In a
method that nobody is seen to call: a clip and then a step through the scaler, where the class calls
`scale` and never `unscale_`.
Clipping is `clip_grad_norm_` and `clip_grad_value_`, and a loop over the parameters that multiplies
each gradient by a number computed from gradients, or clamps it. Not reported: an infinite limit (it
measures), a limit that is multiplied by the scale (`limit * scaler.get_scale()`), gradients that
are divided by hand, a scaler that is certainly disabled, and Accelerate and Fabric, which unscale
by themselves.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Backward, Clip, Event, GradEdited, OptimizerStep, Unscale
from trueloop.doctor.model.findings import Insert, Move
from trueloop.doctor.model.things import Optimizer, Tensor
from trueloop.doctor.rules.shared.step_order import (
    StepRule,
    disjoint,
    has_parameters_of,
    is_edit,
    may_change_gradients,
    named,
    scaling,
    side_by_side,
)


class ClipsScaledGradients(StepRule):
    code = "TL501"

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        window = self.window(event.optimizer)
        unscaled = any(
            isinstance(each, Unscale) and each.optimizer is event.optimizer for each in window
        )
        if unscaled or scaling(event.scaler):
            found = self._scaled(event, window)
            if found is not None:
                self._report(event, *found, window)
            elif not any(isinstance(each, Backward) for each in self.timeline.events):
                self._check_update_alone(event, window)

    def _check_update_alone(self, step: OptimizerStep, window: list[Event]) -> None:
        """A method of a trainer clips and steps; others of it scale the loss, and none unscales."""
        for event in window:
            if may_change_gradients(event, step.optimizer):
                return
            if not self._clips_scaled(event, step.optimizer):
                continue
            assert isinstance(event, Clip)
            if step.scaler is not None and step.scaler.never_unscales:
                self._report(step, event, None, window)
                return

    def _scaled(
        self, step: OptimizerStep, window: list[Event]
    ) -> tuple[Clip | GradEdited, Backward] | None:
        optimizer = step.optimizer
        scaled: Backward | None = None
        for event in window:
            if isinstance(event, Unscale):
                if event.optimizer is None or not disjoint(event.optimizer, optimizer):
                    return None
            elif is_edit(event) or may_change_gradients(event, optimizer):
                return None
            elif isinstance(event, Backward):
                by = event.loss.scaled_by if event.loss is not None else None
                if scaling(by) and self.feeds(event, optimizer):
                    scaled = event
            elif scaled is not None and (
                self._clips_scaled(event, optimizer)
                or (isinstance(event, GradEdited) and _is_of(event, optimizer))
            ):
                assert isinstance(event, (Clip, GradEdited))
                return event, scaled
        return None

    def _clips_scaled(self, event: Event, optimizer: Optimizer) -> bool:
        """It clips to a limit of plain gradients; one times the scale is right."""
        return isinstance(event, Clip) and not event.times_scale and self.clips(event, optimizer)

    def _report(
        self,
        step: OptimizerStep,
        clip: Clip | GradEdited,
        backward: Backward | None,
        window: list[Event],
    ) -> None:
        late = next((each for each in window if isinstance(each, Unscale)), None)
        remedies: list[Insert | Move] = []
        if late is not None and side_by_side(late, clip):
            remedies = [Move(late.place, clip.place, "before")]
        elif late is None and side_by_side(clip, step) and step.spelled and step.scaler_spelled:
            text = f"{step.scaler_spelled}.unscale_({step.spelled})"
            remedies = [Insert(text, clip.place, "before")]
        place = clip.place
        if isinstance(clip, GradEdited) and clip.stack[: len(step.stack)] == step.stack:
            place = (*clip.stack, place)[len(step.stack)]  # the call of the function that clips
        self.report(
            place,
            "The gradients are clipped while they are still multiplied by the loss scale:"
            " the effective limit is thousands of times smaller than it reads.",
            related=[
                *([(backward.place, "computes scaled gradients")] if backward is not None else []),
                *([(late.place, "unscales, too late")] if late is not None else []),
            ],
            fix=f"Call `{step.scaler_spelled or 'scaler'}.unscale_("
            f"{step.spelled or named(step.optimizer).strip('`')})` before clipping.",
            remedies=remedies,
        )


def _is_of(event: GradEdited, optimizer: Optimizer) -> bool:
    """The gradients are those of the optimizer's parameters."""
    target = event.target
    return isinstance(target, Tensor) and any(
        has_parameters_of(optimizer, model) for model in target.models
    )
