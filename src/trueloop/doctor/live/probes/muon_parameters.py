"""Matrices that Muon updates although no hidden layer has them."""

from __future__ import annotations

from types import FrameType
from typing import TYPE_CHECKING

import torch
from torch import nn

from trueloop.doctor.live.objects import inspection
from trueloop.doctor.live.objects.registry import WeakMap
from trueloop.doctor.live.probes import parameter_stats
from trueloop.doctor.live.probes.probe import Probe
from trueloop.doctor.model.events import Event
from trueloop.doctor.model.measurements import MuonOfEmbedding

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from trueloop.doctor.live.context import Context

_HEADS = frozenset(
    "head lm_head output output_layer out_head to_logits logits unembed unembedding vocab_proj"
    " decoder fc_out classifier".split()
)


class MuonParameters(Probe):
    """Looks once at the parameters of each of torch's own Muons, after its first update."""

    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self._seen = WeakMap[bool]()

    def after_step(self, optimizer: Optimizer, event: Event, frame: FrameType) -> None:
        muon = getattr(torch.optim, "Muon", None)
        if muon is None or type(optimizer) is not muon or self._seen.get(optimizer) is not None:
            return
        self._seen.put(optimizer, True)
        updated = [each for each in inspection.parameters_of(optimizer) if each.grad is not None]
        embeddings = [p for p in updated if self._is_of_embedding(p)]
        heads = [p for p in updated if not self._is_of_embedding(p) and self._is_of_head(p)]
        if not embeddings and not heads:
            return
        parts = ["the embedding"] * bool(embeddings) + ["the output layer"] * bool(heads)
        found = MuonOfEmbedding(
            optimizer=self.watcher.things.optimizer(optimizer),
            parameters=[self._name_of(each) for each in (embeddings + heads)[:4]],
            held=" and ".join(parts),
        )
        self.watcher.measure(found.at(event))

    def _is_of_embedding(self, parameter: torch.Tensor) -> bool:
        return any(
            isinstance(owner, (nn.Embedding, nn.EmbeddingBag)) and owner.weight is parameter
            for owner in parameter_stats.owners(self.watcher, parameter)
        )

    def _is_of_head(self, parameter: torch.Tensor) -> bool:
        """It is the weight of the one linear layer of the model's own (of no block's) that is
        called a head, and has as many outputs as an embedding of the model has rows."""
        owners = parameter_stats.owners(self.watcher, parameter)
        if len(owners) != 1 or not isinstance(owners[0], nn.Linear):
            return False
        root = self.watcher.things.root_of(owners[0])
        rows = {each.num_embeddings for each in root.modules() if isinstance(each, nn.Embedding)}
        heads = [
            (name, each)
            for name, each in root.named_modules()
            if isinstance(each, nn.Linear)
            and each.out_features in rows
            and name.rpartition(".")[2] in _HEADS
        ]
        if len(heads) != 1 or heads[0][1] is not owners[0]:
            return False
        # A block's own layers are in a numbered list of equal blocks.
        return not any(part.isdecimal() for part in heads[0][0].split("."))

    def _name_of(self, parameter: torch.Tensor) -> str:
        owners = parameter_stats.owners(self.watcher, parameter)
        if not owners:
            return ""
        root = self.watcher.things.root_of(owners[-1])
        thing = self.watcher.things.model(root)
        return ".".join(filter(None, (thing.name, parameter_stats.name_of(root, parameter))))
