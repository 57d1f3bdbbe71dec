"""Muon updates an embedding, or the output layer of a language model.

## What it does

Finds a `torch.optim.Muon` that has the matrix of an `nn.Embedding`, or of the layer that computes
the logits of a vocabulary.

## Why it breaks training

Muon replaces a matrix's momentum with the nearest orthogonal matrix, so that every direction gets
an update of the same size. That suits hidden layers. An embedding is a table of rows: in each batch
a few tokens have a gradient, but after orthogonalisation all rows change, rare and absent tokens as
much as frequent ones. The same is true of the output layer. Torch accepts these matrices because
they have two dimensions, and nothing raises: the loss is higher than with AdamW for them.

## Wrong

```python
matrices = [p for p in model.parameters() if p.ndim == 2]
muon = torch.optim.Muon(matrices, lr=0.02)
```

## Right

```python
hidden = [p for p in model.blocks.parameters() if p.ndim == 2]
chosen = {id(p) for p in hidden}
others = [p for p in model.parameters() if id(p) not in chosen]
muon = torch.optim.Muon(hidden, lr=0.02)
adamw = torch.optim.AdamW(others, lr=3e-4)
```

or `trueloop.optimizers.muon(model)`, which divides the parameters so.

## Sources

- PyTorch, [Muon](https://docs.pytorch.org/docs/stable/generated/torch.optim.Muon.html): it is for
  the two-dimensional parameters of hidden layers; biases and embeddings are for a method such as
  AdamW
- Jordan, [Muon: an optimizer for hidden layers in neural
  networks](https://kellerjordan.github.io/posts/muon/), 2024: embeddings, and the final fully
  connected layer, by AdamW

## How it is detected

In source, torch's own Muon gets all parameters of a model that has an embedding, or all with two
dimensions; if names, types or shapes are checked too, nothing is reported. In a running program, a
parameter that Muon updates is the weight of an `nn.Embedding`, or of the one linear layer that is
called a head, has as many outputs as the embedding has rows, and is outside of the blocks. Not
reported: frozen embeddings, the last layer of a classifier, and Muon from other packages (they may
split the parameters themselves).
"""

from __future__ import annotations

from trueloop.doctor.model.events import FlagsSet, Made, OptimizerStep
from trueloop.doctor.model.measurements import MuonOfEmbedding
from trueloop.doctor.model.things import Model, Optimizer
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called

_EMBEDDINGS = ("torch.nn.Embedding", "torch.nn.EmbeddingBag")
_FIX = (
    "Give Muon only the weight matrices of the hidden layers and the rest to AdamW, or"
    " use `trueloop.optimizers.muon(model)`, which does both."
)


class MuonOnEmbeddings(Rule):
    code = "TL312"

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[Optimizer, list[Model]] = {}
        """Embeddings among an optimizer's parameters, as source shows."""
        self.frozen: list[Model] = []

    def on_made(self, event: Made) -> None:
        if isinstance(event.thing, Optimizer):
            models = event.thing.all_matrices_of
            found = [m for model in models for m in model.family() if m.kind in _EMBEDDINGS]
            if found:
                self.held[event.thing] = found

    def on_flags_set(self, event: FlagsSet) -> None:
        self.frozen += [event.model] if event.model is not None else []

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        found = self.held.pop(event.optimizer, [])
        found = [
            each
            for each in found
            if not any(each.shares_parameters(other) for other in self.frozen)
        ]
        if found:
            self._report(event.optimizer, [_named(each) for each in found], "the embedding")

    def on_muon_of_embedding(self, event: MuonOfEmbedding) -> None:
        self._report(event.optimizer, event.parameters, event.held)

    def _report(self, optimizer: Optimizer, names: list[str], what: str) -> None:
        named = ", ".join(f"`{name}`" for name in names if name)
        self.report(
            optimizer.made,
            f"{called(optimizer, 'Muon')} updates {what}{f' ({named})' if named else ''}."
            " An embedding is a table of rows, not a linear map: Muon's orthogonalised"
            " updates change every token's row in every batch.",
            fix=_FIX,
        )


def _named(model: Model) -> str:
    """`model.embed`, as far as it has names."""
    for parent in model.parents:
        for name, child in parent.children.items():
            if child is model:
                return ".".join(filter(None, (parent.name, name)))
    return model.name
