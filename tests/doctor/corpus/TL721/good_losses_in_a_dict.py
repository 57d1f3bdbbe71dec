import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
rows = [{"x": torch.randn(3), "a": torch.randn(1), "b": torch.randn(1)} for _ in range(12)]
body, heads = nn.Linear(3, 8), nn.ModuleDict({"a": nn.Linear(8, 1), "b": nn.Linear(8, 1)})
optimizer = torch.optim.Adam([*body.parameters(), *heads.parameters()], lr=1e-3)
for batch in DataLoader(rows, batch_size=4, shuffle=True):
    hidden = torch.relu(body(batch["x"]))
    losses = {
        name: nn.functional.mse_loss(head(hidden), batch[name]) for name, head in heads.items()
    }
    loss = sum(losses.values()) / len(losses)
    metrics = {name: value.item() for name, value in losses.items()}
    mean = sum(metrics.values()) / len(metrics)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
