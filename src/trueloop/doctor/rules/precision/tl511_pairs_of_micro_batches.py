"""A loss that compares samples of one batch is accumulated over micro-batches.

## What it does

Finds gradient accumulation over a loss into which a matrix of all pairs of samples goes: InfoNCE,
NT-Xent, the loss of CLIP, mining of triplets, relational distillation, MMD.

## Why it breaks training

Accumulated gradients are those of the large batch where the loss is a sum over samples. A loss over
pairs is not: each sample is compared with those of its own micro-batch alone. With N micro-batches
of B samples each has B - 1 others to be told from, and not N·B - 1; of all pairs of the large batch
only one in N is left. The number of negatives is what such losses live on, and raising N, which
should stand for a larger batch, adds none.

## Wrong

```python
for i, (one, other) in enumerate(loader):
    a, b = normalize(model(one)), normalize(model(other))
    logits = a @ b.T / temperature
    (cross_entropy(logits, torch.arange(len(a))) / N).backward()
    if (i + 1) % N == 0:
        optimizer.step()
        optimizer.zero_grad()
```

## Right

```python
# All micro-batches are embedded without a graph, and compared once; the gradient of each
# embedding is then passed on through its micro-batch (GradCache).
with torch.no_grad():
    kept = [embed(model, part) for part in parts]
kept = [(a.requires_grad_(), b.requires_grad_()) for a, b in kept]
info_nce(torch.cat([a for a, _ in kept]), torch.cat([b for _, b in kept])).backward()
for part, (a, b) in zip(parts, kept):
    torch.autograd.backward(embed(model, part), (a.grad, b.grad))
optimizer.step()
```

## Sources

- Gao et al., [Scaling Deep Contrastive Learning Batch Size under Memory Limited
  Setup](https://arxiv.org/abs/2101.06983), 2021: why accumulation does not do, and GradCache.
- Chen et al., [A Simple Framework for Contrastive Learning of Visual
  Representations](https://arxiv.org/abs/2002.05709), 2020: what the size of the batch does.

## How it is detected

While the program runs: the graph of a loss holds a product of rows with rows, or their distances,
with as many rows and columns as the batch has samples (or a small multiple: views), both sides made
of what models gave for them; or a cross-entropy is asked which column is each row's own. The step
has come every N-th turn of its loop twice, and at least two such losses of different turns lie in
its window. It is advice: who knows it may mean it. Silent: one comparison per window, products with
weights (classifiers with as many classes as samples), attention inside of a model, products of
columns (Barlow Twins), graphs that are a sample each, and programs without accumulation.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Backward, Measured, OptimizerStep
from trueloop.doctor.rules.shared.step_order import StepRule, backwards, inside, micro, named


class PairsOfMicroBatches(StepRule):
    code = "TL511"

    def __init__(self) -> None:
        super().__init__()
        self._rows: dict[int, int] = {}
        """Serial of a backward -> rows of the matrix of pairs that its loss holds."""

    def on_measured(self, event: Measured) -> None:
        if event.what == "pairs of samples":
            self._rows[event.values["serial"]] = event.values["rows"]

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        if self._rows and not event.closure and (self.every(event) or 0) > 1:
            found = self._apart(event)
            if len(found) > 1:
                self._tell(event, found)
        super().on_optimizer_step(event)

    def _apart(self, step: OptimizerStep) -> list[Backward]:
        """Losses over pairs, of different micro-batches of the window that a step closes."""
        turn, optimizer = micro(step), step.optimizer
        fed = [
            each
            for each in backwards(self.window(optimizer))
            if each.serial in self._rows and self.feeds(each, optimizer)
        ]
        if not fed or not inside(fed[-1], turn):
            return []
        same = [each for each in fed if each.place == fed[-1].place]
        turns = {micro(each) for each in same}
        # In a loop of its own it may be a backward for each task, or each part, of one batch.
        if any(each is None or turn is None or each.loop is not turn.loop for each in turns):
            return []
        return same if len(turns) == len(same) else []

    def _tell(self, step: OptimizerStep, found: list[Backward]) -> None:
        rows, count = self._rows[found[-1].serial], len(found)
        self.report(
            found[-1].place,
            f"The loss compares the {rows} rows of a micro-batch with each other, and"
            f" {count} micro-batches are accumulated: each row meets the {rows} rows of"
            f" its own micro-batch, not all {rows * count} of the update. The gradient is"
            " not that of the large batch.",
            related=[
                (
                    step.place,
                    f"{named(step.optimizer, step.spelled)} steps once per accumulated update",
                )
            ],
            fix="Use larger micro-batches (lower precision, activation checkpointing), or"
            " embed all micro-batches first and compare them once (GradCache).",
        )
