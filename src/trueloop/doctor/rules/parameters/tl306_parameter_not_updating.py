"""A parameter has a gradient, the optimizer steps, and the parameter does not change.

## What it does

Finds parameters that an optimizer holds, with a positive learning rate and a gradient of normal
size, whose values are bitwise the same after each of many steps.

## Why it breaks training

The optimizer does not apply the gradient: a custom optimizer updates a copy (`p = p - lr * grad`)
or only its first parameter group, or a wrapper does not delegate. Or the parameter is so large that
updates round to nothing: at 100,000, float32 numbers are 0.008 apart. That part keeps its initial
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
visible change. Or the parameter is 1000 or more, its gradients of twenty steps point one way, and
the learning rate is less than half the distance to the next number of its type. Not reported:
values that are reset after the step (clamping), Rprop, L-BFGS, and parameters in half precision,
where small updates round to nothing (TL507).
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
        has, them = ("have", "them") if several else ("has", "it")
        still = (
            f"{first.updates} steps of {called(first.optimizer, 'the optimizer')} have not changed"
            f" {them} by a single bit"
        )
        spacing = first.spacing if isinstance(first, ParameterMoves) else 0.0
        if spacing:
            self.report(
                place,
                f"{names} {has} gradients that point one way, but {still}: numbers of this size are"
                f" {spacing:.1g} apart in this type, and the updates round away.",
                fix="Learn the difference from a constant: `start + offset`, with an offset that"
                " begins at 0.",
                related=[(first.optimizer.made, "its optimizer")],
            )
            return
        self.report(
            place,
            f"{names} {has} gradients of normal size, but {still}.",
            fix="Check what the optimizer's `step()` does for this parameter and its group.",
        )
