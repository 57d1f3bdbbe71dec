"""The optimizer holds a parameter that no gradient ever reaches.

## What it does

Finds trainable parameters of one's own modules that an optimizer holds and that get no gradient
in many updates, while others of the same optimizer do.

## Why it breaks training

A layer whose output is cut off (`.detach()`, `.data`, `torch.no_grad()`, a trip through numpy, an
`argmax`) or that `forward` forgot to call does not learn: the optimizer passes over what has no
gradient, without a word. The part stays as it was initialised; what comes after it learns on
random features. One would see a score below what others report, and under DDP an error about
unused parameters.

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

and where it is meant: `self.encoder.requires_grad_(False)`; a layer of no use is best removed.

## Sources

- PyTorch, [Autograd mechanics: locally disabling gradient
  computation](https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation)
- PyTorch,
  [DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html):
  `find_unused_parameters`

## How it is detected

While the program runs: in twenty updates of its optimizer that brought gradients to others, the
parameter had none, and the optimizer has no state for it. Silent are frozen parameters, modules in
eval mode, weights that were read from a file or copied (used without being trained, on purpose),
parts of a library's networks, and whatever gets a gradient later (a branch that joins late).
"""

from __future__ import annotations

from trueloop.doctor.model.events import Measured
from trueloop.doctor.model.findings import Location
from trueloop.doctor.rules.shared.by_parameter import ByParameter
from trueloop.doctor.rules.shared.evidence import called


class ParameterNeverGetsGradient(ByParameter):
    code = "TL304"
    kinds = ("without", "gets")

    def tell(self, place: Location, first: Measured, names: str, several: bool) -> None:
        made = getattr(first.subject, "made", None)
        self.report(
            place,
            f"{called(first.subject, 'The optimizer')} holds {names}, but"
            f" {'they have' if several else 'it has'} received no gradient in"
            f" {first.values['updates']} updates:"
            f" {'they keep their initial values' if several else 'it keeps its initial value'}.",
            fix="Find what stops the gradient (`.detach()`, `.data`, `no_grad`, numpy) or the"
            " missing call in `forward`; if this is intended, freeze the parameters with"
            " `requires_grad_(False)`.",
            related=[(made, "the optimizer")] if made is not None and made.line else [],
        )
