"""Each parameter is stepped by a hook as soon as its gradient is there, and freed at once."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer_dict = {p: torch.optim.Adam([p], lr=1e-3) for p in model.parameters()}


def optimizer_hook(parameter):
    optimizer_dict[parameter].step()
    optimizer_dict[parameter].zero_grad()


for p in model.parameters():
    p.register_post_accumulate_grad_hook(optimizer_hook)

loader = torch.utils.data.DataLoader(torch.randn(48, 8), batch_size=12, shuffle=True)
for epoch in range(2):
    for x in loader:
        loss = (model(x) - x.mean(1, keepdim=True)).pow(2).mean()
        loss.backward()
    print(loss.item())
