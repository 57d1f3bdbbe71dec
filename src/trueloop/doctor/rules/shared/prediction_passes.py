"""Programs that only predict: they load weights, and neither they nor their files train."""

from __future__ import annotations

from trueloop.doctor.model.events import Ended, ModelForward, StateDictLoaded
from trueloop.doctor.model.file_origins import checkpoint_of
from trueloop.doctor.model.things import Model
from trueloop.doctor.rules.shared.passes import switches

_IN_BETWEEN = frozenset(
    "to cuda cpu float half double DataParallel load_state_dict compile".split()
)
"""`Net().to(device).eval()` names no network."""


class PredictionPasses:
    """The forwards of a run that may be predictions in train mode."""

    def __init__(self) -> None:
        self.forwards: list[ModelForward] = []
        self._loaded: list[Model] = []

    def load(self, event: StateDictLoaded) -> None:
        """Note weights that come out of a file."""
        if isinstance(event.thing, Model) and checkpoint_of(event.state) is not None:
            self._loaded.append(event.thing)

    def add(self, event: ModelForward) -> None:
        """Note a forward in train mode; one in a constructor finds out the shape of an output."""
        constructs = event.place.function.endswith("__init__")
        if event.turns and not event.grad and event.result_used and not constructs:
            self.forwards.append(event)

    def in_train_mode(self, end: Ended) -> list[ModelForward]:
        """The forwards, in loops, of trained networks that nothing puts into eval mode."""
        if not end.switched.isdisjoint(_IN_BETWEEN):
            return []
        return [
            each
            for each in self.forwards
            if switches(each.model) is True
            and self.is_trained(each.model)
            and not any(member.exposed for member in each.model.family())
            and not any(_is_switched(member, end) for member in _with_parents(each.model))
        ]

    def is_trained(self, model: Model) -> bool:
        """Its weights are from a file, or are a library's."""
        loaded = any(model.shares_parameters(each) for each in self._loaded)
        return loaded or any(member.pretrained for member in model.family())


def _with_parents(model: Model) -> list[Model]:
    found, waiting = [model], [*model.parents]
    while waiting and len(found) < 20:
        found.append(waiting.pop())
        waiting += found[-1].parents
    return found


def _is_switched(model: Model, end: Ended) -> bool:
    """A file switches something of this name; of a module that a method begins with, any file."""
    last = model.name.rpartition(".")[2]
    return last in end.switched or (last == "self" and not end.whole_program)
