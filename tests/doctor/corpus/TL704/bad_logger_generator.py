"""Every batch passes through a logger's generator."""
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class MetricLogger:
    def __init__(self):
        self.seconds = []

    def log_every(self, iterable, every, header=""):
        count, start = 0, time.time()
        for item in iterable:
            self.seconds.append(time.time() - start)
            yield item
            if count % every == 0:
                print(f"{header} [{count}/{len(iterable)}]")
            count += 1
            start = time.time()


def train_one_epoch(model, loader, optimizer, epoch):
    model.train()
    logger = MetricLogger()
    for step, (images, labels) in enumerate(logger.log_every(loader, 2, f"epoch {epoch}")):  # <- TL704
        loss = cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "0")
    dist.init_process_group("gloo", rank=int(os.environ.get("RANK", "0")), world_size=int(os.environ.get("WORLD_SIZE", "1")))
    data = TensorDataset(torch.randn(96, 6), torch.randint(0, 3, (96,)))
    sampler = DistributedSampler(data, num_replicas=dist.get_world_size(), rank=dist.get_rank(), shuffle=True)
    loader = DataLoader(data, sampler=sampler, batch_size=16, drop_last=True)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(4):
        train_one_epoch(model, loader, optimizer, epoch)
    dist.destroy_process_group()


main()
