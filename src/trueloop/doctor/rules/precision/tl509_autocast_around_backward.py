"""`backward()` or `step()` runs inside an autocast block.

## What it does

Finds a `backward()`, or an optimizer's `step()`, inside an enabled `torch.autocast` block.

## Why it breaks training

It usually does not: in what was measured the gradients come out the same, and this is advice.
Autocast chooses a dtype for each operation of the *forward* pass; backward operations use the dtype
of their forward operation. Inside the block only what the backward pass computes by calling
operations itself may be cast a second time (custom functions, gradient penalties, recomputation in
checkpointing), and parameter updates made of several tensor operations may be rounded. Torch
advises against it.

## Wrong

```python
with torch.autocast("cuda", dtype=torch.bfloat16):
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

## Sources

- PyTorch, [torch.autocast](https://docs.pytorch.org/docs/stable/amp.html#autocasting): "autocast
  should wrap only the forward pass(es) of your network, including the loss computation(s).
  Backward passes under autocast are not recommended."
- PyTorch, [Automatic Mixed Precision
  recipe](https://docs.pytorch.org/tutorials/recipes/recipes/amp_recipe.html)

## How it is detected

The call is in the block or in a function called from it, and an optimizer steps with its gradients
in the same loop over batches. Not reported: a block that is certainly disabled,
`torch.autograd.grad` for a penalty that is part of the loss, a `backward()` outside of training,
and `accelerator.backward`. There is one finding per block: its `backward()`, or else its `step()`.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Backward, OptimizerStep
from trueloop.doctor.rules.shared.step_order import StepRule, backwards, inside, named


class AutocastAroundBackward(StepRule):
    code = "TL509"

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        within = [
            backward
            for backward in backwards(self.window(event.optimizer))
            if backward.autocast is not None
            and backward.by != "foreign"
            and (event.turn is None or inside(backward, event.turn))
            and self.feeds(backward, event.optimizer)
        ]
        if within:
            self._report_backward(within[0])
        elif event.autocast is not None:
            self._report_step(event)

    def _report_backward(self, backward: Backward) -> None:
        self.report(
            backward.place,
            "`backward()` runs inside the autocast block, which torch advises against:"
            " autocast is for the forward pass and the loss. The gradients are usually the"
            " same; custom functions and recomputation may be cast a second time.",
            fix="End the block before `backward()`.",
        )

    def _report_step(self, step: OptimizerStep) -> None:
        self.report(
            step.place,
            f"{named(step.optimizer, step.spelled)} steps inside the autocast block, which"
            " torch advises against: autocast is for the forward pass and the loss. An update"
            " that is written by hand may be rounded.",
            fix="End the block before the step.",
        )
