"""One layer is in several places of a list: all of them have the same weights.

## What it does

Finds an `nn.ModuleList`, `nn.Sequential` or `nn.ModuleDict` that has one layer object, with
parameters, in several places, because a list was multiplied or the object was added again and
again.

## Why it breaks training

`[layer] * n` is a list of one object, `n` times: it does not copy the layer. What looks like `n`
layers is a single layer that is applied `n` times. It has the parameters of one, all places learn
the same, and the gradient of that layer is the sum over all of them. Nothing raises, shapes fit,
the printed model shows `n` layers; it learns like a much smaller model than the one that was meant.

## Wrong

```python
self.layers = nn.ModuleList([nn.Linear(dim, dim)] * depth)
```

## Right

```python
self.layers = nn.ModuleList([nn.Linear(dim, dim) for _ in range(depth)])
```

or, for a layer that is made elsewhere, `copy.deepcopy(layer)` for each place.

## Sources

- Python, [Common sequence
  operations](https://docs.python.org/3/library/stdtypes.html#common-sequence-operations): the items
  of `s * n` "are not copied; they are referenced multiple times"
- PyTorch, [Modules notes](https://docs.pytorch.org/docs/stable/notes/modules.html), and
  `Module.parameters()`, which yields the parameters of a module that is in several places once

## How it is detected

The layer has parameters, is not frozen, and is created in the expression that repeats it
(`[nn.Linear(4, 4)] * n`), or in the call of a function that only repeats what it is given
(`repeat(nn.Linear(4, 4), n)`). A layer that has a name before it is repeated counts if the name is
used for nothing else and each layer gets the output of the one before (`x = layer(x)`,
`nn.Sequential`). Not reported: tests, layers without parameters, copies, one place (also if it is
one by default), a flag as the factor (`[norm] * use_norm`), a layer that is in the list because it
is written there twice, code that speaks of sharing (a comment or a name with `shared`, `tied`,
`reuse` in the class), and a condition that decides between one layer and several.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Ended, FlagsSet
from trueloop.doctor.model.things import Model
from trueloop.doctor.model.value_events import LayerInPlaces, LayerRepeated
from trueloop.doctor.model.vocabulary import CONTAINERS
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.own_parameters import has_parameters

_FIX = (
    "Make a layer for each place (`[nn.Linear(4, 4) for _ in range(n)]`), or copy it with"
    " `copy.deepcopy(layer)`."
)


class LayerIsRepeated(Rule):
    code = "TL313"
    hygiene = True  # the models of tests are there to be counted, moved or saved, not to learn

    def __init__(self) -> None:
        super().__init__()
        self.repeated: list[LayerRepeated] = []
        self.frozen: set[Model] = set()

    def on_layer_repeated(self, event: LayerRepeated) -> None:
        self.repeated.append(event)

    def on_flags_set(self, event: FlagsSet) -> None:
        if event.requires_grad is not True:
            self.frozen.update(event.model.family())

    def on_ended(self, event: Ended) -> None:
        for each in self.repeated:
            layer = each.layer
            holders = [parent for parent in layer.parents if _is_container(parent)]
            if not holders or not has_parameters(layer) or layer in self.frozen:
                continue
            short = layer.kind.rpartition(".")[2]
            self.report(
                each.place,
                f"This puts one `{short}` in several places of a list, which does not copy it: all"
                " of them have the same weights, so the layers are a single layer that is applied"
                " again and again.",
                fix=_FIX,
                related=[(layer.made, "the one layer")],
            )

    def on_layer_in_places(self, event: LayerInPlaces) -> None:
        self.report(
            event.place,
            f"One `{event.kind}` is in {event.places} places of this `{event.container}`: all of"
            f" them have the same {event.numel:,} parameters, where {event.places} layers would"
            f" have {event.places * event.numel:,}.",
            fix=_FIX,
        )


def _is_container(parent: Model) -> bool:
    kinds = [parent.kind, *(parent.cls.dotted_bases() if parent.cls is not None else ())]
    return any(kind.rpartition(".")[2] in CONTAINERS for kind in kinds)
