import random
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    seed: int = 1337
    epochs: int = 2
    batch_size: int = 8
    num_workers: int = 2
    lr: float = 3e-3


cfg = Config()


def seed_worker(worker_id):
    random.seed(cfg.seed + worker_id)  # <- TL702


class MaskedTokens(Dataset):
    def __init__(self, tokens, mask_id=0):
        self.tokens, self.mask_id = tokens, mask_id

    def _mask(self, row):
        return [self.mask_id if random.random() < 0.15 else t for t in row]

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, i):
        row = self.tokens[i].tolist()
        return torch.tensor(self._mask(row)), self.tokens[i]


class Trainer:
    def __init__(self, model, loader, cfg):
        self.model, self.loader, self.cfg = model, loader, cfg
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)

    def train(self):
        self.model.train()
        for epoch in range(self.cfg.epochs):
            for masked, tokens in self.loader:
                logits = self.model(masked)
                loss = nn.functional.cross_entropy(logits.transpose(1, 2), tokens)
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()
                self.optimizer.step()


if __name__ == "__main__":
    torch.manual_seed(cfg.seed)
    data = MaskedTokens(torch.randint(1, 20, (32, 6)))
    loader = DataLoader(
        data,
        batch_size=cfg.batch_size,
        shuffle=True,
        num_workers=cfg.num_workers,
        worker_init_fn=seed_worker,
    )
    model = nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 20))
    Trainer(model, loader, cfg).train()
