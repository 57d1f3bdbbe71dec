"""Which ways to keep a state keep it."""

import copy

import torch

model = torch.nn.Linear(1, 1)
kept = {
    "model.state_dict()": model.state_dict(),
    "model.state_dict().copy()": model.state_dict().copy(),
    "{k: v.cpu() for ...} on the CPU": {k: v.cpu() for k, v in model.state_dict().items()},
    "{k: v.clone() for ...}": {k: v.clone() for k, v in model.state_dict().items()},
    "copy.deepcopy(model.state_dict())": copy.deepcopy(model.state_dict()),
}
before = model.weight.item()
with torch.no_grad():
    model.weight += 1
for way, state in kept.items():
    print(f"{way:35}", "kept" if state["weight"].item() == before else "changed with the model")
