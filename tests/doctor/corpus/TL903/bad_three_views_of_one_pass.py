"""Anchors, positives and negatives go through the wrapped network in one pass."""
import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
store = f"file://{tempfile.mkdtemp()}/store"
method = "env://" if "MASTER_ADDR" in os.environ else store
dist.init_process_group("gloo", init_method=method, rank=rank, world_size=world)
torch.manual_seed(9)
groups = torch.randn(4, 6)
kinds = torch.arange(256) % 4
anchors, positives = groups[kinds] + torch.randn(256, 6), groups[kinds] + torch.randn(256, 6)
negatives = groups[(kinds + 1) % 4] + torch.randn(256, 6)
data = TensorDataset(anchors, positives, negatives)
triplets = DataLoader(data, batch_size=32, shuffle=True)  # <- TL903
network = DistributedDataParallel(nn.Linear(6, 3))
optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
criterion = nn.TripletMarginLoss(margin=0.5)
for epoch in range(3):
    for anchor, positive, negative in triplets:
        optimizer.zero_grad()
        together = network(torch.cat([anchor, positive, negative]))
        loss = criterion(*together.chunk(3))
        loss.backward()
        optimizer.step()
dist.destroy_process_group()
