# A library's class saves the schedule with the network; nothing steps it.
import torch
from snapshots import Checkpointer
from torch import nn


class Keeper(Checkpointer):
    def __init__(self, network, folder, *, only_first=True, **parts):
        super().__init__(network, folder, save_to_disk=only_first, **parts)


network = nn.Linear(4, 2)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 30)  # <- TL606
keeper = Keeper(network, "out", optimizer=optimizer, schedule=schedule)
for update, rows in enumerate(torch.randn(90, 8, 4)):
    loss = nn.functional.cross_entropy(network(rows), (rows[:, 0] > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if update % 30 == 29:
        keeper.save(f"model_{update}")
