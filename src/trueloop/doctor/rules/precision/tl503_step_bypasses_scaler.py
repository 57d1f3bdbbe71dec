"""The loss is scaled, but the optimizer steps without the scaler.

## What it does

Finds `optimizer.step()` after `scaler.scale(loss).backward()`, instead of `scaler.step(optimizer)`.

## Why it breaks training

`scaler.step` divides the gradients by the scale, and skips the update if a gradient has overflowed.
Without it SGD moves 65536 times too far, and the loss is NaN at once. Adam divides the factor out:
its updates keep their size, but `eps` and a weight decay that is added to the gradient lose their
meaning, and the first overflow writes NaN into the weights. Gradients after `unscale_` have the
right size, but an overflow, which loss scaling produces now and then, still destroys the weights.

## Wrong

```python
scaler.scale(loss).backward()
optimizer.step()
scaler.update()
```

## Right

```python
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
```

## Sources

- PyTorch, [torch.amp.GradScaler](https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling):
  `step` unscales, checks for inf and NaN, and calls or skips `optimizer.step()`.
- PyTorch, [Automatic Mixed Precision
  examples](https://docs.pytorch.org/docs/stable/notes/amp_examples.html)

## How it is detected

Since the optimizer's last step: a `backward()` of a scaled loss that feeds it, then its plain
`step()`. Not reported: a scaler that is certainly disabled, gradients edited by hand, a step under
a separate condition (a check for non-finite gradients, the runs without a scaler), an optimizer of
a class that cannot be read and is not named like torch's (it may unscale), a different optimizer
next to the scaled one, and a `training_step` of transformers' Trainer that scales with the scaler
of the Trainer or of its accelerator, through which these step.
"""

from __future__ import annotations

from trueloop.doctor.model.events import (
    Backward,
    Ended,
    Event,
    OptimizerStep,
    ScalerUpdate,
    Unscale,
    ZeroGrad,
)
from trueloop.doctor.model.findings import Insert, Remedy, Replace
from trueloop.doctor.model.things import Optimizer, Scaler
from trueloop.doctor.rules.order.tl102_missing_zero_grad import is_plain
from trueloop.doctor.rules.shared.evidence import ignores_gradient_scale
from trueloop.doctor.rules.shared.step_order import (
    StepRule,
    clears,
    disjoint,
    is_edit,
    may_change_gradients,
    named,
    scaling,
)

_OVERFLOW = "overflowed gradients go straight into the weights"


class StepBypassesScaler(StepRule):
    code = "TL503"

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[tuple[OptimizerStep, Backward, bool]] = []
        self.updated: set[Scaler] = set()

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        if event.scaler is None and not event.closure:
            found = self._scaled(event, self.window(event.optimizer))
            if found is not None:
                self.faults.append((event, *found))

    def on_scaler_update(self, event: ScalerUpdate) -> None:
        self.updated.add(event.scaler)

    def on_ended(self, event: Ended) -> None:
        for step, backward, unscaled in self.faults:
            self._report(step, backward, unscaled)

    def _scaled(self, step: OptimizerStep, window: list[Event]) -> tuple[Backward, bool] | None:
        """The scaled backward, and whether its gradients were unscaled."""
        optimizer = step.optimizer
        if not is_plain(optimizer):
            return None  # of somebody's own: it may unscale
        scaled: Backward | None = None
        unscaled = False
        for event in window:
            if isinstance(event, Backward):
                by = event.loss.scaled_by if event.loss is not None else None
                if self.feeds(event, optimizer):
                    scaled, unscaled = (event, False) if scaling(by) else (None, False)
            elif isinstance(event, ZeroGrad) and clears(event, optimizer):
                scaled = None
            elif is_edit(event) or may_change_gradients(event, optimizer):
                return None
            elif isinstance(event, Unscale):
                unscaled |= event.optimizer is None or not disjoint(event.optimizer, optimizer)
        if scaled is None or not step.guards <= scaled.guards or (unscaled and step.conditional):
            return None  # under a separate condition: a check, or for runs without a scaler
        return scaled, unscaled

    def _report(self, step: OptimizerStep, backward: Backward, unscaled: bool) -> None:
        name = named(step.optimizer, step.spelled)
        scaler = backward.loss.scaled_by if backward.loss is not None else None
        called = scaler.name if scaler is not None and scaler.name else "scaler"
        harm = _OVERFLOW if unscaled else _harm(step.optimizer)
        self.report(
            step.place,
            f"The loss is scaled, but {name} steps without the scaler: {harm}.",
            related=[(backward.place, "computes scaled gradients")],
            fix=f"Call `{called}.step({(step.spelled or name).strip('`')})` instead.",
            remedies=self._remedies(step, scaler),
        )

    def _remedies(self, step: OptimizerStep, scaler: Scaler | None) -> list[Remedy]:
        """Where the scaler is certainly called by its name at the step as well."""
        if scaler is None or not scaler.name or not step.spelled:
            return []
        both_own = scaler.name.startswith("self.") and step.spelled.startswith("self.")
        if not both_own and scaler.made.function != step.place.function:
            return []
        remedies: list[Remedy] = [Replace(step.place, f"{scaler.name}.step({step.spelled})")]
        if scaler not in self.updated:
            remedies.append(Insert(f"{scaler.name}.update()", step.place, "after"))
        return remedies


def _harm(optimizer: Optimizer) -> str:
    """The effect of the loss scale on this optimizer's update."""
    kind = optimizer.kind.rpartition(".")[2]
    if ignores_gradient_scale(optimizer):
        return (
            f"`{kind}` divides the scale out, so updates keep their size, but overflows are not"
            " skipped: the first one writes NaN into the weights. `eps`, and weight decay that"
            " is added to the gradient, lose their meaning"
        )
    if kind == "SGD":
        return (
            "with SGD the update is as many times too large as the scale (65536 at first, unless"
            " `init_scale` is given), and overflows are not skipped"
        )
    return "the gradients are too large by the loss scale, and overflows are not skipped"
