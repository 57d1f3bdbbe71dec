"""Padded sequences by hand: each place counts once, in an update of several ragged batches too."""

import torch
from data import IGNORED, Tagger, padded, sequences
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

EPOCHS, ACCUMULATE = 8, 4

torch.manual_seed(0)
train = DataLoader(sequences(320, seed=0), batch_size=8, shuffle=True, collate_fn=padded)
val = DataLoader(sequences(200, seed=1), batch_size=100, collate_fn=padded)
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)


def summed_loss(batch: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, int]:
    letters, targets, lengths = batch
    logits = model(letters, lengths).flatten(0, 1)
    loss = cross_entropy(logits, targets.flatten(), ignore_index=IGNORED, reduction="sum")
    return loss, int((targets != IGNORED).sum())


for _ in range(EPOCHS):
    model.train()
    places = 0
    for i, batch in enumerate(train):
        loss, count = summed_loss(batch)
        loss.backward()
        places += count
        if (i + 1) % ACCUMULATE == 0 or i + 1 == len(train):
            for parameter in model.parameters():
                parameter.grad /= places
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            optimizer.step()
            optimizer.zero_grad()
            places = 0
    model.eval()
    with torch.inference_mode():
        losses, counts = zip(*[summed_loss(batch) for batch in val], strict=True)

print(f"val_loss {(sum(losses) / sum(counts)).item():.4f}")
