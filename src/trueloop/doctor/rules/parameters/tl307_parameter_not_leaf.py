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
`.data`, which are explicit; and tensors computed from a registered parameter.
"""

from __future__ import annotations

from trueloop.doctor.model.events import AttributeSet, Ended, Made
from trueloop.doctor.model.findings import Remedy, Replace
from trueloop.doctor.model.things import Optimizer, Tensor
from trueloop.doctor.rules.base import Rule


class ParameterNotLeaf(Rule):
    code = "TL307"

    def __init__(self) -> None:
        super().__init__()
        self.copies: list[tuple[AttributeSet, Tensor]] = []
        self.kept: set[Tensor] = set()
        """Parameters that a module or an optimizer has."""

    def on_attribute_set(self, event: AttributeSet) -> None:
        if not isinstance(event.value, Tensor):
            return
        if "leaf" in event.value.facts:
            self.kept.add(event.value)
        elif event.value.graph and isinstance(event.value.facts.get("copy of"), Tensor):
            self.copies.append((event, event.value))

    def on_made(self, event: Made) -> None:
        if isinstance(event.thing, Optimizer):
            self.kept.update(event.thing.tensors)

    def on_ended(self, event: Ended) -> None:
        for each, copy in self.copies:
            leaf: Tensor = copy.facts["copy of"]
            if leaf in self.kept or copy in self.kept:
                continue
            self.report(
                each.place,
                f"`.{copy.facts['copied by']}(...)` of a parameter returns a plain tensor:"
                f" `{each.attribute}` is not registered, not trained and not saved.",
                fix=(
                    "Prepare the tensor first (device, dtype, shape), and wrap it in"
                    " `nn.Parameter(...)` last."
                ),
                related=[(leaf.made, "the parameter that is lost")] if leaf.made.line else [],
                remedies=_remedy(copy),
            )


def _remedy(copy: Tensor) -> list[Remedy]:
    """The conversion goes into the brackets of `nn.Parameter(...)`, where they are known."""
    text, place = copy.facts.get("the other way round"), copy.facts.get("copied at")
    return [Replace(place, text)] if text and place else []
