import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
import torch.utils.data as data
from torch import nn


class Squares(data.Dataset):
    def __init__(self, n):
        self.x = torch.linspace(-1, 1, n).unsqueeze(1)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.x[i] ** 2


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.model = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 1))
        self.model = nn.parallel.DistributedDataParallel(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=cfg["lr"])
        self.loader = data.DataLoader(  # <- TL903
            Squares(cfg["samples"]),
            batch_size=cfg["batch_size"],
            shuffle=True,
            drop_last=True,
        )

    def fit(self):
        for epoch in range(self.cfg["epochs"]):
            self.model.train()
            for x, y in self.loader:
                loss = F.mse_loss(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()


if __name__ == "__main__":
    for key, value in dict(MASTER_ADDR="localhost", MASTER_PORT="0", RANK="0", WORLD_SIZE="1").items():
        os.environ.setdefault(key, value)
    dist.init_process_group("gloo")
    Trainer({"lr": 1e-3, "samples": 96, "batch_size": 24, "epochs": 2}).fit()
    dist.destroy_process_group()
