import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
records = [{"rgb": torch.randn(3), "depth": torch.randn(3), "y": i % 2} for i in range(12)]
encoders = nn.ModuleDict({"rgb": nn.Linear(3, 4), "depth": nn.Linear(3, 4)})
head = nn.Linear(4, 2)
optimizer = torch.optim.Adam([*encoders.parameters(), *head.parameters()], lr=1e-3)
for batch in DataLoader(records, batch_size=6, shuffle=True):
    assert len(batch) == 3, "a sample has two views and a label"
    views = {name: value for name, value in batch.items() if name != "y"}
    hidden = sum(encoders[name](value) for name, value in views.items()) / len(views)
    loss = nn.functional.cross_entropy(head(hidden), batch["y"])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("entries in a batch:", len(batch))
