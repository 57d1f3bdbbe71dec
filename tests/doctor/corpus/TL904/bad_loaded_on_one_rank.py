import io
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

os.environ.setdefault("MASTER_ADDR", "localhost")
os.environ.setdefault("MASTER_PORT", "0")
rank = int(os.environ.setdefault("RANK", "0"))
os.environ.setdefault("WORLD_SIZE", "1")
dist.init_process_group("gloo")


def train():
    torch.manual_seed(1)
    pretrained = io.BytesIO()
    torch.save(nn.Linear(12, 3).state_dict(), pretrained)
    pretrained.seek(0)

    inputs = torch.randn(128, 12)
    dataset = TensorDataset(inputs, inputs[:, :3].argmax(dim=1))
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=16, sampler=sampler)
    model = nn.parallel.DistributedDataParallel(nn.Linear(12, 3))  # <- TL904
    if rank == 0:
        model.module.load_state_dict(torch.load(pretrained))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(15):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch}: {loss.item():.4f}")


train()
dist.barrier()
dist.destroy_process_group()
