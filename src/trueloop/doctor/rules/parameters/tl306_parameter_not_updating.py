"""A parameter has a gradient, the optimizer steps, and the parameter does not change.

## What it does

Finds parameters that an optimizer holds, with a positive learning rate and a gradient of normal
size, whose values are bitwise the same after each of many steps.

## Why it breaks training

The optimizer does not apply the gradient: a custom optimizer updates a copy (`p = p - lr * grad`)
or only its first parameter group, or a wrapper does not delegate. That part keeps its initial
values, and the rest learns around it. Nothing raises.

## Wrong

```python
for p in self.param_groups[0]["params"]:
    p.data.add_(p.grad, alpha=-lr)
```

## Right

```python
for group in self.param_groups:
    for p in group["params"]:
        p.data.add_(p.grad, alpha=-group["lr"])
```

## Sources

- PyTorch, [torch.optim.Optimizer](https://docs.pytorch.org/docs/stable/optim.html#base-class)
- PyTorch, [per-parameter
  options](https://docs.pytorch.org/docs/stable/optim.html#per-parameter-options)

## How it is detected

In a running program: sum and norm of the parameter are the same before and after twenty steps that
changed others; its gradient was finite and at least a thousandth of the median of the others (a
bias before a batch norm has only rounding noise), and the learning rate is large enough for a
visible change. Not reported: values that are reset after the step (clamping), Rprop, L-BFGS, and
parameters in half precision, where small updates round to nothing (TL507).
"""

from __future__ import annotations

from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.measurements import ParameterMeasured, ParameterMoves
from trueloop.doctor.rules.shared.by_parameter import ByParameter
from trueloop.doctor.rules.shared.evidence import called


class ParameterNotUpdating(ByParameter):
    code = "TL306"

    def on_parameter_moves(self, event: ParameterMoves) -> None:
        self.check(event)

    def report_parameters(
        self, place: Location, first: ParameterMeasured, names: str, several: bool
    ) -> None:
        self.report(
            place,
            f"{names} {'have' if several else 'has'} gradients of normal size, but"
            f" {first.updates} steps of {called(first.optimizer, 'the optimizer')}"
            f" have not changed {'them' if several else 'it'} by a single bit.",
            fix="Check what the optimizer's `step()` does for this parameter and its group.",
        )
