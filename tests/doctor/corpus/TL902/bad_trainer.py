import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Trainer:
    def __init__(self, model, loader, optimizer, local_rank, folder):
        self.model = DistributedDataParallel(model)
        self.loader = loader
        self.optimizer = optimizer
        self.local_rank = local_rank
        self.folder = folder

    def _save_checkpoint(self, epoch):
        snapshot = {
            "model": self.model.module.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "epoch": epoch,
        }
        torch.save(snapshot, os.path.join(self.folder, "checkpoint.pt"))  # <- TL902

    def _run_epoch(self, epoch):
        self.loader.sampler.set_epoch(epoch)
        for source, targets in self.loader:
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.model(source), targets)
            loss.backward()
            self.optimizer.step()

    def train(self, max_epochs, save_every):
        for epoch in range(max_epochs):
            self._run_epoch(epoch)
            if epoch % save_every == 0:
                self._save_checkpoint(epoch)


def main(folder):
    for key, value in dict(MASTER_ADDR="localhost", MASTER_PORT="0", RANK="0", WORLD_SIZE="1").items():
        os.environ.setdefault(key, value)
    dist.init_process_group("gloo")
    data = TensorDataset(torch.randn(48, 4), torch.randn(48, 1))
    loader = DataLoader(data, batch_size=12, sampler=DistributedSampler(data))
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    trainer = Trainer(model, loader, optimizer, int(os.environ.get("LOCAL_RANK", 0)), folder)
    trainer.train(max_epochs=2, save_every=1)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(folder)
