"""The effects of a mode on a network: on its dropout, on its batch norm, or on both."""

from __future__ import annotations

from trueloop.doctor.model.things import Model
from trueloop.doctor.model.vocabulary import MODE_DEPENDENT_LAYERS
from trueloop.doctor.rules.shared.passes import severity_of


def effects(model: Model, on_dropout: str, on_batch_norm: str) -> str:
    """The effects of a mode on the layers that a network has; on both kinds where it may have
    layers that are not known."""
    both = f"{on_dropout}, and {on_batch_norm}"
    family = [each for each in model.family() if not each.same_in_both_modes or each.asks_mode]
    if any(each.asks_mode or not (each.complete or each.samples) for each in family):
        return f"{both}, if it has such layers" if severity_of(model) else both
    kinds = {each.kind.rpartition(".")[2] for each in family} & MODE_DEPENDENT_LAYERS
    normalises = {each for each in kinds if "Norm" in each}
    if normalises == kinds and kinds:
        return on_batch_norm
    return both if normalises or not kinds else on_dropout
