"""The transformer gets a mask of the padding, the loss does not; the embedding knows of none."""

from itertools import islice

import torch
import torch.nn as nn

FILL = 31


def batches(size=8, longest=12):
    while True:
        lengths = torch.randint(4, longest + 1, (size,))
        tokens = torch.randint(0, FILL, (size, longest + 1))
        real = torch.arange(longest + 1) < lengths[:, None]
        yield tokens.where(real, FILL), real


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(FILL + 1, 16)
        self.place = nn.Parameter(torch.zeros(16, 16))
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.head = nn.Linear(16, FILL + 1)

    def forward(self, tokens, attention_mask):
        x = self.token(tokens) + self.place[: tokens.shape[1]]
        causal = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).triu(1)
        x = self.layer(x, src_mask=causal, src_key_padding_mask=~attention_mask)
        return self.head(x)


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.optim = torch.optim.AdamW(model.parameters(), lr=lr)
        self.loss_fn = nn.CrossEntropyLoss(label_smoothing=0.1)

    def training_step(self, tokens, mask):
        logits = self.model(tokens[:, :-1], attention_mask=mask[:, :-1])
        targets = tokens[:, 1:].contiguous()
        return self.loss_fn(logits.view(-1, logits.size(-1)), targets.view(-1))  # <- TL409

    def fit(self, steps):
        for tokens, mask in islice(batches(), steps):
            loss = self.training_step(tokens, mask)
            self.optim.zero_grad()
            loss.backward()
            self.optim.step()
        print(loss.item())


torch.manual_seed(0)
Trainer(Block(), 1e-3).fit(12)
