"""A layer with parameters is created again in each forward pass.

## What it does

Finds a layer such as `nn.Linear` that is created inside `forward`, or in a function that each batch
calls, and used for the loss.

## Why it breaks training

A layer begins with random weights. Created in `forward`, it has new ones in each batch, in
training and in evaluation, and no optimizer holds them: it is never trained, and the layers before
it learn against weights that change each time. `state_dict()` does not save it. Nothing raises; the
loss falls as far as the other layers can get it, and two calls with the same input differ. A
normalisation created in `forward` draws nothing, but its scale and shift are never trained, and it
has no running statistics for evaluation.

## Wrong

```python
def forward(self, x):
    x = self.features(x).flatten(1)
    return nn.Linear(x.shape[1], 10)(x)
```

## Right

```python
def __init__(self):
    super().__init__()
    self.head = nn.LazyLinear(10)

def forward(self, x):
    return self.head(self.features(x).flatten(1))
```

## Sources

- PyTorch, [Modules notes](https://docs.pytorch.org/docs/stable/notes/modules.html): submodules are
  created in `__init__`, so that their parameters are registered
- PyTorch, [LazyLinear](https://docs.pytorch.org/docs/stable/generated/torch.nn.LazyLinear.html):
  the number of inputs is inferred at the first call

## How it is detected

At the same place a layer with parameters is created in two batches (in a running program, in three
updates), gradients flow through it, and no optimizer holds it. Not reported: layers that are built
under a condition and kept, layers that become part of a model which was there before, layers of a
whole model that is made outside of any `forward` (for each fold or checkpoint), and layers whose
weights are loaded, written by hand, frozen or passed to an optimizer (meta-learning, fixed
filters).
"""

from __future__ import annotations

from trueloop.doctor.model.events import (
    Backward,
    FlagsSet,
    Made,
    ManualUpdate,
    Replaced,
    StateDictLoaded,
)
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.measurements import LayerMadeAgain
from trueloop.doctor.model.things import Model, Turn
from trueloop.doctor.rules.shared.own_parameters import has_parameters
from trueloop.doctor.rules.shared.step_order import StepRule, has_parameters_of, micro


class LayerMadeInForward(StepRule):
    code = "TL308"

    def __init__(self) -> None:
        super().__init__()
        self._made: dict[Model, Made] = {}
        self._born: dict[Model, Turn | None] = {}
        """Modules of any kind, and the turn that made them."""
        self._set: set[Model] = set()
        """Modules whose weights come from elsewhere."""
        self._turns: dict[Location, set[Turn]] = {}

    def on_made(self, event: Made) -> None:
        layer = event.thing
        if not isinstance(layer, Model):
            return
        self._born[layer] = micro(event)
        if not layer.kind.startswith("torch.nn."):
            return
        always = event.dropped or not (event.guards or event.windows)
        functions = [each.function.rpartition(".")[2] for each in (*event.stack, event.place)]
        # A whole model may be made anew for each of something: a fold, a checkpoint.
        is_whole = functions[-1] == "__init__" and "forward" not in functions
        if micro(event) is not None and always and not is_whole:
            self._made[layer] = event

    def on_flags_set(self, event: FlagsSet) -> None:
        self._set.update(event.model.family())

    def on_replaced(self, event: Replaced) -> None:
        self._set.update(event.model.family())

    def on_state_dict_loaded(self, event: StateDictLoaded) -> None:
        if isinstance(event.thing, Model):
            self._set.update(event.thing.family())

    def on_manual_update(self, event: ManualUpdate) -> None:
        if event.target is not None:
            self._set.update(event.target.models)

    def on_backward(self, event: Backward) -> None:
        turn = micro(event)
        if event.loss is None or turn is None or not self.timeline.optimizers:
            return
        for layer in event.loss.models:
            made = self._made.get(layer)
            if made is None or micro(made) != turn or not self._is_lost(layer):
                continue
            turns = self._turns.setdefault(made.place, set())
            turns.add(turn)
            if len(turns) > 1:
                self._report(made.place, layer.kind.rpartition(".")[2])

    def _is_lost(self, layer: Model) -> bool:
        """It has parameters which nobody sets and no optimizer holds."""
        return (
            not layer.children
            and has_parameters(layer)
            and layer not in self._set
            and not layer.exposed
            and all(self._born.get(owner) == self._born[layer] for owner in layer.parents)
            and not any(has_parameters_of(each, layer) for each in self.timeline.optimizers)
        )

    def on_layer_made_again(self, event: LayerMadeAgain) -> None:
        self._report(event.place, event.kind)

    def _report(self, place: Location, kind: str) -> None:
        self.report(
            place,
            f"This `{kind}` is created again for each batch: it has new weights each time, and no"
            " optimizer trains them.",
            fix="Create it once in `__init__` (`nn.LazyLinear` infers its input size), and call it"
            " here.",
        )
