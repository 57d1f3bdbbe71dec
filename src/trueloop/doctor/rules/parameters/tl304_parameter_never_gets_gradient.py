"""The optimizer has a parameter that never gets a gradient.

## What it does

Finds trainable parameters of user-defined modules that an optimizer has and that get no gradient in
many updates, while others of the same optimizer do.

## Why it breaks training

A layer whose output is cut off from the graph (`.detach()`, `.data`, `torch.no_grad()`, numpy,
`argmax`), or that `forward` does not call, does not learn: the optimizer skips parameters without a
gradient. The part keeps its initial values, and later layers learn on random features. The score
stays below what others report, and DDP raises an error about unused parameters.

## Wrong

```python
features = self.encoder(x).detach()
return self.head(features)
```

## Right

```python
features = self.encoder(x)
return self.head(features)
```

and if it is intended: `self.encoder.requires_grad_(False)`. Remove a layer that is not used.

## Sources

- PyTorch, [Autograd mechanics: locally disabling gradient
  computation](https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation)
- PyTorch,
  [DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html):
  `find_unused_parameters`

## How it is detected

In a running program: in twenty updates of its optimizer that gave gradients to others, the
parameter had none, and the optimizer has no state for it. Not reported: frozen parameters, modules
in eval mode, weights that were read from a file or copied, parts of a library's networks, and
parameters that get a gradient later (a branch that joins late).
"""

from __future__ import annotations

from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.measurements import ParameterGradient, ParameterMeasured
from trueloop.doctor.rules.shared.by_parameter import ByParameter
from trueloop.doctor.rules.shared.evidence import called


class ParameterNeverGetsGradient(ByParameter):
    code = "TL304"

    def on_parameter_gradient(self, event: ParameterGradient) -> None:
        self.check(event)

    def report_parameters(
        self, place: Location, first: ParameterMeasured, names: str, several: bool
    ) -> None:
        made = first.optimizer.made
        self.report(
            place,
            f"{called(first.optimizer, 'The optimizer')} has {names}, but"
            f" {'they have' if several else 'it has'} received no gradient in"
            f" {first.updates} updates:"
            f" {'they keep their initial values' if several else 'it keeps its initial value'}.",
            fix="Find what stops the gradient (`.detach()`, `.data`, `no_grad`, numpy) or the"
            " missing call in `forward`; if this is intended, freeze the parameters with"
            " `requires_grad_(False)`.",
            related=[(made, "the optimizer")] if made.line else [],
        )
