"""`nn.Parameter(...).to(device)` is a plain tensor: it is not registered and not trained.

## What it does

Finds a parameter that goes through a method which returns a new tensor (`.to`, `.cuda`, `.half`,
`.clone`, `.view`) before it is assigned to a module.

## Why it breaks training

A module registers only an `nn.Parameter`. The result of `.to(device)` is a tensor computed from
one, and the parameter itself is lost. The attribute is missing from `parameters()` (no optimizer
trains it) and `state_dict()` (no checkpoint saves it), and `model.to()` does not move it. If
nothing has to be converted, `.to` returns the parameter itself: the program is right on the CPU and
wrong on the GPU. A scale, token or temperature keeps its initial value.

## Wrong

```python
self.scale = nn.Parameter(torch.ones(1)).to(device)
```

## Right

```python
self.scale = nn.Parameter(torch.ones(1, device=device))
```

or without a device here, and `model.to(device)` where the model is made.

## Sources

- PyTorch,
  [Parameter](https://docs.pytorch.org/docs/stable/generated/torch.nn.parameter.Parameter.html):
  "when they're assigned as Module attributes they are automatically added to the list of its
  parameters"
- PyTorch,
  [Tensor.is_leaf](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.is_leaf.html): a
  tensor moved to a different device is not a leaf

## How it is detected

The value of a module's attribute comes directly from such a method of a new `nn.Parameter`, which
itself is neither assigned to a module nor passed to an optimizer. Not reported:
`.requires_grad_()`, `.float()` and `.to("cpu")`, which return the parameter itself; `.detach()` and
`.data`, which are explicit; tensors computed from a registered parameter; and a frozen one
(`requires_grad=False`) that is computed again in each run, unlike one of random numbers.
"""

from __future__ import annotations

from trueloop.doctor.model.events import AttributeSet, Ended, Made
from trueloop.doctor.model.findings import Replace
from trueloop.doctor.model.things import Optimizer, ParameterCopy, Tensor
from trueloop.doctor.rules.base import Rule


class ParameterNotLeaf(Rule):
    code = "TL307"

    def __init__(self) -> None:
        super().__init__()
        self.copies: list[tuple[AttributeSet, ParameterCopy]] = []
        self.kept: set[Tensor] = set()
        """Parameters that a module or an optimizer has."""

    def on_attribute_set(self, event: AttributeSet) -> None:
        if not isinstance(event.value, Tensor):
            return
        if event.value.is_parameter:
            self.kept.add(event.value)
        elif event.value.graph and event.value.copy is not None:
            self.copies.append((event, event.value.copy))

    def on_made(self, event: Made) -> None:
        if isinstance(event.thing, Optimizer):
            self.kept.update(event.thing.tensors)

    def on_ended(self, event: Ended) -> None:
        for each, copy in self.copies:
            if copy.parameter in self.kept or each.value in self.kept:
                continue
            self.report(
                each.place,
                f"`.{copy.method}(...)` of a parameter returns a plain tensor:"
                f" `{each.attribute}` is not registered, not trained and not saved.",
                fix=(
                    "Prepare the tensor first (device, dtype, shape), and wrap it in"
                    " `nn.Parameter(...)` last."
                ),
                related=[(copy.parameter.made, "the parameter that is lost")]
                if copy.parameter.made.line
                else [],
                remedies=[Replace(copy.place, copy.rewritten)] if copy.rewritten else [],
            )
