"""The gradient norm is computed in Python, one parameter at a time.

## What it does

Finds loops that compute the norm of each parameter's gradient, convert it to a Python number and
add it up, if this takes 5% or more of an update's time.

## Why it breaks training

Nothing is wrong, but training is slow. Every `.item()` waits for the device, once per parameter; on
the CPU the calls themselves take the time. torch computes the norm of all gradients in one call.

## Wrong

```python
total = 0.0
for p in model.parameters():
    total += p.grad.norm().item() ** 2
print(total**0.5)
```

## Right

```python
total = torch.nn.utils.get_total_norm(p.grad for p in model.parameters())
print(total.item())
```

## Sources

- PyTorch,
  [torch.nn.utils.get_total_norm](https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.get_total_norm.html)
- PyTorch,
  [torch.nn.utils.clip_grad_norm_](https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html),
  which returns the norm that it has clipped

## How it is detected

In a running program: norms of at least four gradients in one function, each followed by `.item()`
or `float(...)`, in at least nine of ten updates, and the time from the first to the last. The
source must add them up: norms that are stored per parameter are intended. Code of libraries is not
reported.
"""

from __future__ import annotations

from trueloop.doctor.model.speed_measurements import GradientNorms
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.timings import counts, duration, percent

SHARE = 0.05
OFTEN = 0.9
"""Of the updates."""
FEWEST = 4


class PythonGradientNorm(Rule):
    code = "TS106"

    def on_gradient_norms(self, event: GradientNorms) -> None:
        if not counts(event.updates):
            return
        if event.count < FEWEST or event.often < OFTEN or event.share < SHARE:
            return
        self.report(
            event.place,
            f"The norms of {event.count} gradients are computed and read one by one in"
            f" each update, which takes {duration(event.each)},"
            f" {percent(event.share)} of it.",
            fix="Compute the norm in one call with torch.nn.utils.get_total_norm, or use the"
            " value that clip_grad_norm_ returns.",
        )
