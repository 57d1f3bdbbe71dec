"""The same with a count beside the loss: `Step` and `evaluate` weight each batch by its places."""

import torch
from data import IGNORED, Tagger, padded, sequences
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import trueloop

EPOCHS, ACCUMULATE = 8, 4

torch.manual_seed(0)
train = trueloop.Feed(sequences(320, seed=0), 8, shuffle=True, collate_fn=padded)
val = trueloop.Feed(sequences(200, seed=1), 100, collate_fn=padded)
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)


def mean_loss(model: nn.Module, batch: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    letters, targets, lengths = batch
    logits = model(letters, lengths).flatten(0, 1)
    loss = cross_entropy(logits, targets.flatten(), ignore_index=IGNORED)
    return loss, (targets != IGNORED).sum()


step = trueloop.Step(model, optimizer, mean_loss, accumulate=ACCUMULATE, clip_norm=1.0)
history = trueloop.fit(step, train, val, epochs=EPOCHS)

print(f"val_loss {history.records[-1].scores['val_loss']:.4f}")
