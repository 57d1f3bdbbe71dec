"""The effects of a mode on a network: on its dropout, on its batch norm, or on both."""

from __future__ import annotations

from trueloop.doctor.model.things import MODE_DEPENDENT_LAYERS, Model


def effects(model: Model, on_dropout: str, on_batch_norm: str) -> str:
    """The effects of a mode on the layers that a network has; on both kinds where it may have
    layers that are not known."""
    both = f"{on_dropout}, and {on_batch_norm}"
    family = [*model.family()]
    if any(each.asks_mode or not (each.complete or each.samples) for each in family):
        return both
    kinds = {
        each.kind.rpartition(".")[2] for each in family if each.arguments.get("p") not in (0, 0.0)
    } & MODE_DEPENDENT_LAYERS
    normalises = {each for each in kinds if "Norm" in each}
    if normalises == kinds and kinds:
        return on_batch_norm
    return both if normalises or not kinds else on_dropout
