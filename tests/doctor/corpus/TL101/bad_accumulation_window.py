from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    lr: float = 3e-3
    batch_size: int = 8
    accumulation_steps: int = 4
    epochs: int = 2


class CharModel(nn.Module):
    def __init__(self, vocab=12, width=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, vocab)

    def forward(self, tokens):
        hidden, _ = self.rnn(self.embed(tokens))
        return self.head(hidden)


def run(cfg: Config):
    torch.manual_seed(1337)
    tokens = torch.randint(0, 12, (128, 9))
    loader = torch.utils.data.DataLoader(tokens, batch_size=cfg.batch_size, shuffle=True)
    model = CharModel()
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    model.train()
    for epoch in range(cfg.epochs):
        for step, chunk in enumerate(loader):
            logits = model(chunk[:, :-1])
            loss = F.cross_entropy(logits.reshape(-1, 12), chunk[:, 1:].reshape(-1))
            (loss / cfg.accumulation_steps).backward()
            if (step + 1) % cfg.accumulation_steps == 0:
                opt.zero_grad(set_to_none=True)  # <- TL101
                opt.step()
        print(f"epoch {epoch}: {loss.item():.4f}")


if __name__ == "__main__":
    run(Config())
