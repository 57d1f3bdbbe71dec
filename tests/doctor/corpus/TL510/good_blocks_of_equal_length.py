"""Blocks of a long text: `ignore_index` is set and nothing is ever ignored."""

import torch
import torch.nn as nn
from torch.nn import functional as F

torch.manual_seed(0)
text = torch.randint(0, 32, (2000,))
block, batch_size, accumulation = 16, 8, 4


def get_batch():
    at = torch.randint(len(text) - block, (batch_size,))
    x = torch.stack([text[i : i + block] for i in at])
    y = torch.stack([text[i + 1 : i + 1 + block] for i in at])
    return x, y


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(32, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.lm_head = nn.Linear(16, 32)

    def forward(self, idx, targets):
        mask = nn.Transformer.generate_square_subsequent_mask(idx.shape[1])
        logits = self.lm_head(self.layer(self.wte(idx), src_mask=mask, is_causal=True))
        loss = F.cross_entropy(logits.view(-1, 32), targets.view(-1), ignore_index=-1)
        return logits, loss


model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
x, y = get_batch()
for it in range(6):
    for micro_step in range(accumulation):
        logits, loss = model(x, y)
        loss = loss / accumulation
        x, y = get_batch()
        loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
