import torch
from torch import nn
from torch.nn.utils import parametrizations


def replace(model):
    model[0] = nn.Linear(2, 2)


ways = {
    "layer replaced": replace,
    "weight = nn.Parameter(...)": lambda m: setattr(m[0], "weight", nn.Parameter(torch.ones(2, 2))),
    "load_state_dict(..., assign=True)": lambda m: m.load_state_dict(
        nn.Sequential(nn.Linear(2, 2)).state_dict(), assign=True
    ),
    "to_empty(device=...)": lambda m: m.to("meta").to_empty(device="cpu"),
    "weight_norm added": lambda m: parametrizations.weight_norm(m[0]),
    "load_state_dict(...)": lambda m: m.load_state_dict(
        nn.Sequential(nn.Linear(2, 2)).state_dict()
    ),
    "weight.data = ...": lambda m: setattr(m[0].weight, "data", torch.ones(2, 2)),
    "double()": lambda m: m.double(),
}
print("does the optimizer still hold all of the model's parameters after")
for what, change in ways.items():
    model = nn.Sequential(nn.Linear(2, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    change(model)
    held = {id(p) for p in optimizer.param_groups[0]["params"]}
    print(f"  {what:34}", "yes" if all(id(p) in held for p in model.parameters()) else "NO")
