"""`scaler.step()` runs in every iteration, but `scaler.update()` never does.

## What it does

Finds a loop in which `scaler.step(optimizer)` runs in every iteration and `scaler.update()` in
none.

## Why it breaks training

`update()` adapts the scale: it halves it after an overflow and raises it after a long time without
one. Without it the scale stays at 65536, and torch raises an error at the second step ("step() has
already been called since the last update()"). A disabled scaler raises nothing, so the fault shows
only on machines with mixed precision.

## Wrong

```python
scaler.scale(loss).backward()
scaler.step(optimizer)
```

## Right

```python
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
```

## Sources

- PyTorch, [torch.amp.GradScaler](https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling):
  "update() should only be called once per iteration, after scaler.step(optimizer)".
- PyTorch, [Automatic Mixed Precision
  examples](https://docs.pytorch.org/docs/stable/notes/amp_examples.html)

## How it is detected

The same `scaler.step(...)` runs in two iterations of a loop with a `backward()` and no `update()`
of that scaler in between, in any run of the program. Not reported: several optimizers that share
one update, a function whose caller updates, and a scaler that is certainly disabled or passed to
code that cannot be read.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Backward, EscapedToUnknown, OptimizerStep, ScalerUpdate
from trueloop.doctor.model.findings import Insert
from trueloop.doctor.rules.shared.step_order import StepRule, scaling


class ScalerNeverUpdated(StepRule):
    code = "TL502"

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        scaler = event.scaler
        before = self.last_step(event.optimizer)
        if scaler is not None and before is not None and before.place == event.place:
            since = self.window(event.optimizer)
            updated = any(
                (isinstance(each, ScalerUpdate) and each.scaler is scaler)
                or (
                    isinstance(each, EscapedToUnknown)
                    and any(thing is scaler for thing in each.things)
                )
                for each in since
            )
            if updated:
                self.refute(event.place)
            elif scaler.updated_by_name:
                pass  # on a condition that did not hold in this run
            elif not any(isinstance(each, Backward) for each in since):
                pass  # a loop over optimizers, in a function whose caller updates
            elif before.scaler is scaler and scaling(scaler) and before.turns != event.turns:
                others = any(
                    isinstance(each, OptimizerStep) and each.scaler is scaler for each in since
                )
                self._report(event, shared=others)

    def _report(self, step: OptimizerStep, *, shared: bool) -> None:
        name = step.scaler_spelled or "scaler"
        remedies = [Insert(f"{name}.update()", step.place, "after")]
        live = step.scaler is not None and step.scaler.updated_by_name is not None
        off = live and step.scaler is not None and not step.scaler.enabled
        harm = "where it is enabled, its" if off else "its"
        self.report(
            step.place,
            f"`{name}.step(...)` runs in every iteration, but `{name}.update()` never"
            f" does: {harm} scale never adapts, and torch raises an error at the second"
            " step.",
            fix=f"Call `{name}.update()` once per iteration, after the step.",
            remedies=remedies if step.scaler_spelled and not shared else [],
        )
