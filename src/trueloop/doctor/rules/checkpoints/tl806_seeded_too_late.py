"""The seed is set after the model was initialised, or after the data was split.

## What it does

Finds `torch.manual_seed` before training, but after the model's weights were initialised or the
data was split at random.

## Why it breaks training

Training works, but cannot be repeated. Each run starts with different weights, or has different
validation samples, although the script says `seed = 42`. Comparisons between settings compare
random initialisations, and a bug that shows in one run is gone in the next.

## Wrong

```python
model = Net()
torch.manual_seed(42)
train(model)
```

## Right

```python
torch.manual_seed(42)
model = Net()
train(model)
```

## Sources

- PyTorch, "Reproducibility": https://docs.pytorch.org/docs/stable/notes/randomness.html
- PyTorch, `torch.manual_seed`:
  https://docs.pytorch.org/docs/stable/generated/torch.manual_seed.html

## How it is detected

In one program, from its start: a model with randomly initialised layers is created, or
`random_split` is called without a generator; then torch's seed is set for the first time, outside
of any loop or in the turn that made the model (a trial of a search, a fold), to a constant or an
option; then that model is trained with those first weights. Not reported: an earlier seed, a seed
that is itself drawn at random or read off a clock, weights that are loaded, copied or set before,
weights that are drawn again after the seed (`reset_parameters`, `nn.init`, `apply`), a seed in the
constructor of a module, which governs the weights of that one, a seed in a function that draws
samples and returns them, and seeds after training has started (for samples, plots, evaluation).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from trueloop.doctor.model.events import (
    AttributeSet,
    Backward,
    Ended,
    Made,
    ManualUpdate,
    Seeded,
    StateDictLoaded,
    Used,
)
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.known_values import Unknown
from trueloop.doctor.model.table_events import SamplesSplit
from trueloop.doctor.model.things import Model, Tensor, Turn
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called, draws_weights, layers_drawn, where_seeded

_CONSTANT = ("constant_", "zeros_", "ones_", "eye_", "dirac_")
_DRAWN_AGAIN = ("torch.nn.Module.reset_parameters", "torch.nn.Module.apply")


class SeededTooLate(Rule):
    code = "TL806"
    hygiene = True

    def __init__(self) -> None:
        super().__init__()
        self._models: list[Model] = []
        self._made_in: dict[Model, tuple[Turn, ...]] = {}
        """The turns of a search or of folds that they were made in."""
        self._set: set[Model] = set()
        """Layers whose first weights the program gives other values."""
        self._split: Location | None = None
        self._seed: Location | None = None
        self._late: tuple[Location, Location, str] | None = None
        self._in_turns = False
        """The seed is set in each turn of a search."""
        self._settled = False
        """A seed was set first, or training has begun: later seeds are not checked."""
        self._kinds: set[str] = set()
        """The classes of the modules that were made."""
        self._seeding = ""
        """The class in whose constructor the seed is set."""

    def on_made(self, event: Made) -> None:
        thing = event.thing
        if isinstance(thing, Model):
            self._kinds.add(thing.kind.rpartition(".")[2])
            constructor = thing.cls.lookup("__init__") if thing.cls is not None else None
            # It may be that of a class above it, or what a decorator has made of it.
            if constructor is not None and not isinstance(constructor, Unknown):
                self._kinds.add(constructor.name.rpartition(".")[0])
        if self._seed is not None or event.guards or not isinstance(thing, Model):
            return
        if thing.known and draws_weights(thing):
            self._models.append(thing)
            self._made_in[thing] = event.turns

    def on_samples_split(self, event: SamplesSplit) -> None:
        if event.function != "torch.utils.data.random_split" or self._seed is not None:
            return
        if not event.seeded and not event.turns and not event.guards:
            self._split = self._split or event.place

    def on_state_dict_loaded(self, event: StateDictLoaded) -> None:
        loaded = event.thing
        if isinstance(loaded, Model):
            self._models = [model for model in self._models if not model.shares_parameters(loaded)]

    def on_attribute_set(self, event: AttributeSet) -> None:
        if event.attribute == "weight":
            self._set.add(event.model)

    def on_manual_update(self, event: ManualUpdate) -> None:
        target = event.target
        if event.guards or (isinstance(target, Tensor) and target.entry == "bias"):
            return
        for model in event.models:
            self._set.update(model.family())

    def on_used(self, event: Used) -> None:
        subject = event.subject
        if event.what in _DRAWN_AGAIN and isinstance(subject, Model):
            self._draw_again([subject])
        elif event.what.startswith("torch.nn.init.") and isinstance(subject, Tensor):
            if subject.entry != "bias" and event.what.endswith(_CONSTANT):
                self._set.update(subject.models)
            self._draw_again(subject.models)

    def _draw_again(self, models: Iterable[Model]) -> None:
        """After the seed: a loop over a model's layers is rarely seen whole, so one is enough."""
        if self._seed is not None:
            for model in models:
                self._set.update(member for whole in _wholes(model) for member in whole.family())

    def on_seeded(self, event: Seeded) -> None:
        if event.library not in ("torch", "all") or event.for_data or self._seed is not None:
            return
        # In the turn of a trial or a fold that made the model, and in no loop within it.
        self._models = [each for each in self._models if self._made_in[each] == event.turns]
        self._split = self._split if not event.turns else None
        late = bool(self._models or self._split) and not event.forked
        self._settled |= not late or event.value is None or event.drawn
        # A file that is imported sets its seed then, before anything that its importer makes.
        self._settled |= not event.place.function and any(
            model.made.path != event.place.path for model in self._models
        )
        self._seed, self._in_turns = where_seeded(event), bool(event.turns)
        cls, _, method = event.place.function.rpartition(".")
        self._seeding = cls if method == "__init__" else ""

    def on_backward(self, event: Backward) -> None:
        if self._settled:
            return
        self._settled = True
        if self._seeding in self._kinds:
            return  # a module seeds the weights that its constructor draws, and no others
        if self._seed is None:
            return
        trained: Any = event.loss.models if event.loss is not None else ()
        for model in self._models:
            if layers_drawn(model) <= self._set:
                self.refute(self._seed)  # in other runs too, which leave an option out
                continue
            if any(model.shares_parameters(each) for each in trained):
                self._late = (self._seed, model.made, called(model, "the model"))
                return
        if self._split is not None:
            self._late = (self._seed, self._split, "the split")

    def on_ended(self, event: Ended) -> None:
        if self._late is None or not event.whole_program:
            return
        seed, before, what = self._late
        drawn = "was split at random" if what == "the split" else "was initialised"
        subject = "the data" if what == "the split" else what
        harm = "every run starts differently, and none can be reproduced."
        if self._in_turns:
            harm = "the seed does not decide the first weights, so no turn can be repeated."
        self.report(
            seed,
            f"The seed is set after {subject} {drawn}: {harm}",
            fix="Set the seed first, before you split the data and create the model.",
            related=[(before, "uses random numbers before the seed")],
        )


def _wholes(model: Model) -> Iterator[Model]:
    """A layer and the models that it is a part of."""
    seen: set[Model] = set()
    waiting = [model]
    while waiting:
        each = waiting.pop()
        if each not in seen:
            seen.add(each)
            yield each
            waiting.extend(each.parents)
