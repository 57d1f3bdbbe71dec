"""A method of the module inside is asked for its penalty; the forward pass is the wrapper's."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(6, 2)
        self.decoder = nn.Linear(2, 6)

    def forward(self, x):
        code = self.encoder(x)
        return self.decoder(code), code

    def penalty(self, code):
        return 1e-3 * code.abs().mean()


def main():
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "0")
    dist.init_process_group(
        "gloo", rank=int(os.environ.get("RANK", 0)), world_size=int(os.environ.get("WORLD_SIZE", 1))
    )
    bare = Autoencoder()
    model = DDP(bare)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(5):
        x = torch.randn(16, 6)
        output, code = model(x)
        loss = nn.functional.mse_loss(output, x) + model.module.penalty(code)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    bare.eval()
    with torch.no_grad():
        print(bare(torch.randn(1, 6))[1])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
