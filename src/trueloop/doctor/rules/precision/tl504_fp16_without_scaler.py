"""float16 autocast trains without a gradient scaler.

## What it does

Finds training whose forward pass runs under float16 autocast and whose loss goes into `backward()`
unscaled.

## Why it breaks training

float16 cannot represent numbers below 6e-8, and numbers below 6e-5 only coarsely. Many gradients
are that small and become zero in the backward pass. Layers far from the loss stop learning, and the
loss reaches a plateau above that of float32. A scaler multiplies the loss so that gradients stay in
range. bfloat16 has the range of float32 and needs no scaler.

## Wrong

```python
with torch.autocast("cuda"):
    loss = criterion(model(inputs), targets)
loss.backward()
optimizer.step()
```

## Right

```python
with torch.autocast("cuda", dtype=torch.bfloat16):
    loss = criterion(model(inputs), targets)
loss.backward()
optimizer.step()
```

or, in float16,

```python
with torch.autocast("cuda"):
    loss = criterion(model(inputs), targets)
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
```

## Sources

- PyTorch, [Automatic Mixed Precision, gradient
  scaling](https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling): "gradient values with
  small magnitudes may not be representable in float16".
- Micikevicius et al., [Mixed Precision Training](https://arxiv.org/abs/1710.03740), 2018, section
  3.2.

## How it is detected

The forward pass of a trained model is in a block that is certainly enabled and certainly float16
(the default of `torch.autocast("cuda")` and `torch.cuda.amp.autocast()`; on the CPU it is
bfloat16), the loss is not scaled, and the optimizer steps without a scaler. Not reported: an
unknown device, dtype or switch, a `backward()` in the other branch of a condition, gradients that
are divided by hand, and a frozen encoder that runs in float16 beside the trained model.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Backward, Event, ModelForward, OptimizerStep
from trueloop.doctor.rules.shared.step_order import (
    StepRule,
    backwards,
    has_parameters_of,
    is_edit,
    may_change_gradients,
)


class Fp16WithoutScaler(StepRule):
    code = "TL504"

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        if event.scaler is None:
            window = self.window(event.optimizer)
            untouched = not any(
                is_edit(each) or may_change_gradients(each, event.optimizer) for each in window
            )
            for backward in backwards(window):
                forward = self._half(backward, event, window)
                if forward is not None and untouched:
                    self._report(backward, forward)

    def _half(
        self, backward: Backward, step: OptimizerStep, window: list[Event]
    ) -> ModelForward | None:
        """The forward pass in float16 that the gradients go through."""
        loss = backward.loss
        if backward.by != "tensor" or loss is None or loss.scaled_by is not None:
            return None
        if not self.feeds(backward, step.optimizer):
            return None
        for event in window:
            if (
                isinstance(event, ModelForward)
                and event.autocast == "float16"
                and event.serial in loss.forwards
                and backward.guards <= event.guards
                and (has_parameters_of(step.optimizer, event.model) or not step.optimizer.models)
            ):
                return event
        return None

    def _report(self, backward: Backward, forward: ModelForward) -> None:
        self.report(
            backward.place,
            "The forward pass runs in float16, but the loss is not scaled: small"
            " gradients round to zero in this `backward()`.",
            related=[(forward.place, "runs under float16 autocast")],
            fix="Use `torch.amp.GradScaler`, or bfloat16 autocast, which needs no scaler.",
        )
