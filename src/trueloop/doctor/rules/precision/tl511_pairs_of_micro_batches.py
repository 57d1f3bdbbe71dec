"""A loss that compares the samples of a batch is accumulated over micro-batches.

## What it does

Finds gradient accumulation over a loss that uses a matrix of all pairs of samples: InfoNCE,
NT-Xent, the loss of CLIP, triplet mining, relational distillation, MMD.

## Why it breaks training

Accumulated gradients equal those of the large batch only if the loss is a sum over samples. A loss
over pairs is not: each sample is compared only with those of its own micro-batch. With N
micro-batches of B samples each has B - 1 negatives instead of N·B - 1; of all pairs of the large
batch only one in N is left. Such losses depend on the number of negatives, and a larger N adds
none.

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
  Setup](https://arxiv.org/abs/2101.06983), 2021: why accumulation is not enough, and GradCache.
- Chen et al., [A Simple Framework for Contrastive Learning of Visual
  Representations](https://arxiv.org/abs/2002.05709), 2020: what the size of the batch does.

## How it is detected

In a running program: the graph of a loss contains a product of rows with rows, or their distances,
with as many rows and columns as the batch has samples (or a small multiple: views), both sides
computed by models; or a cross-entropy asks which column belongs to each row. The step has come at
the same interval twice, and at least two such losses of different iterations belong to its update.
This is advice: it may be intended. Not reported: one comparison per update, products with weights
(classifiers with as many classes as samples), attention inside a model, products of columns (Barlow
Twins), graphs that are one sample each, and programs without accumulation.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Backward, OptimizerStep
from trueloop.doctor.model.loss_measurements import PairwiseLoss
from trueloop.doctor.rules.shared.step_order import StepRule, backwards, inside, micro, named


class PairsOfMicroBatches(StepRule):
    code = "TL511"

    def __init__(self) -> None:
        super().__init__()
        self._rows: dict[int, int] = {}
        """Serial of a backward -> rows of the matrix of pairs in its loss."""

    def on_pairwise_loss(self, event: PairwiseLoss) -> None:
        self._rows[event.backward] = event.rows

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        if self._rows and not event.closure and (self.every(event) or 0) > 1:
            found = self._apart(event)
            if len(found) > 1:
                self._report(event, found)

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

    def _report(self, step: OptimizerStep, found: list[Backward]) -> None:
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
