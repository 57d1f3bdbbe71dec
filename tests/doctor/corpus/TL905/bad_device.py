import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Trainer:
    def __init__(self, net, local_rank):
        self.device = torch.device(f"cuda:{local_rank}" if torch.cuda.is_available() else "cpu")
        self.net = nn.parallel.DistributedDataParallel(net)
        self.net.to(self.device)  # <- TL905
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-3)

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            loader.sampler.set_epoch(epoch)
            self.net.train()
            for x, y in loader:
                x, y = x.to(self.device), y.to(self.device)
                self.optimizer.zero_grad()
                loss = nn.functional.cross_entropy(self.net(x), y)
                loss.backward()
                self.optimizer.step()


def main():
    for key, value in dict(MASTER_ADDR="localhost", MASTER_PORT="0", RANK="0", WORLD_SIZE="1").items():
        os.environ.setdefault(key, value)
    dist.init_process_group("gloo")
    data = TensorDataset(torch.randn(40, 4), torch.randint(0, 2, (40,)))
    loader = DataLoader(data, batch_size=10, sampler=DistributedSampler(data))
    Trainer(nn.Linear(4, 2), int(os.environ.get("LOCAL_RANK", 0))).fit(loader, 2)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
