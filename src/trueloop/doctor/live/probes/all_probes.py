"""All probes, and how they come to hear of the moments that they ask for."""

from __future__ import annotations

from trueloop.doctor.live.hub import Hub
from trueloop.doctor.live.memory import recorded_shapes
from trueloop.doctor.live.probes import (
    batch_mean_sums,
    changed_rates,
    constant_terms,
    data,
    dict_lengths,
    frozen_parts,
    idle_parameters,
    layers_in_places,
    layers_made_again,
    losses,
    losses_by_hand,
    lost_gradients,
    memory_growth,
    micro_batches,
    mode_layers,
    muon_parameters,
    padding,
    pairwise_losses,
    predictions,
    replicas,
    retained_graphs,
    untracked_parameters,
    update_rounding,
    weights_kept,
)
from trueloop.doctor.live.probes.probe import Probe

PROBES: tuple[type[Probe], ...] = (
    *losses.PROBES,
    losses_by_hand.ByHand,
    *data.PROBES,
    untracked_parameters.UntrackedParameters,
    idle_parameters.IdleParameters,
    lost_gradients.LostGradients,
    retained_graphs.RetainedGraphs,
    predictions.Predictions,
    update_rounding.Rounding,
    memory_growth.Growth,
    recorded_shapes.RecordedShapes,
    replicas.Replicas,
    pairwise_losses.Pairs,
    muon_parameters.MuonParameters,
    layers_made_again.LayersMadeAgain,
    constant_terms.ConstantTerms,
    dict_lengths.DictLengths,
    batch_mean_sums.BatchMeanSums,
    padding.Padding,
    micro_batches.MicroBatches,
    weights_kept.KeptWeights,
    frozen_parts.FrozenParts,
    mode_layers.ModeLayers,
    changed_rates.ChangedRates,
    layers_in_places.LayersInPlaces,
)
"""In the order in which they hear of a moment."""


def subscribe(probe: Probe, hub: Hub) -> None:
    """Let a probe hear of the moments whose methods its class overrides."""
    for name, plain in vars(Probe).items():
        if not name.startswith("_") and getattr(type(probe), name) is not plain:
            getattr(hub, name).subscribe(getattr(probe, name))
