"""What shares the data out among the ranks is a library's engine, chosen by an option."""
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

try:
    from opacus import PrivacyEngine
except ImportError:
    PrivacyEngine = None


def components(mode):
    data = TensorDataset(torch.randn(64, 6), torch.randint(0, 2, (64,)))
    loader = DataLoader(data, batch_size=16)
    model = DDP(nn.Linear(6, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if mode in ["hooks", "functorch"]:
        engine = PrivacyEngine()
        model, optimizer, loader = engine.make_private(
            module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=1.0
        )
    return model, optimizer, loader


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", default="plain")
    args = parser.parse_args()
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "0")
    rank = int(os.environ.get("RANK", 0))
    dist.init_process_group("gloo", rank=rank, world_size=int(os.environ.get("WORLD_SIZE", 1)))
    model, optimizer, loader = components(args.mode)
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
