"""A parameter has a gradient, the optimizer steps, and the parameter does not change.

## What it does

Finds parameters that an optimizer holds, with a learning rate above zero and a gradient of usual
size, whose values are bit for bit the same after each of many steps.

## Why it breaks training

The optimizer does not apply what it is given: an optimizer of one's own that updates a copy
(`p = p - lr * grad`) or only its first parameter group, a wrapper that hands on to nobody. That
part stays as it was initialised and the others learn around it. Nothing raises.

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

While the program runs: sum and norm of the parameter are the same right before and right after
twenty steps that did change others; its gradient was finite and at least a thousandth of the
median of the others' (a bias in front of a batch norm has rounding noise alone), and the learning
rate large enough for the update to be far above the spacing of the numbers. What is put back after
the step (clamping), Rprop, L-BFGS, and parameters in half precision, where small updates round to
nothing, are silent.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Measured
from trueloop.doctor.model.findings import Location
from trueloop.doctor.rules.shared.by_parameter import ByParameter
from trueloop.doctor.rules.shared.evidence import called


class ParameterNotUpdating(ByParameter):
    code = "TL306"
    kinds = ("unmoved", "moves")

    def tell(self, place: Location, first: Measured, names: str, several: bool) -> None:
        self.report(
            place,
            f"{names} {'have' if several else 'has'} gradients of normal size, but"
            f" {first.values['updates']} steps of {called(first.subject, 'the optimizer')}"
            f" have not changed {'them' if several else 'it'} by a single bit.",
            fix="Check what the optimizer's `step()` does for this parameter and its group.",
        )
