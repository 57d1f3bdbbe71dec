import torch
from torch import nn


def report(what, model, optimizer):
    held = {id(p) for p in optimizer.param_groups[0]["params"]}
    print(f"{what:36}", all(id(p) in held for p in model.parameters()))


print("does the optimizer still hold the model's own parameters after")
for what in ("double", "half", "bfloat16", "cpu", "cuda"):
    if what == "cuda" and not torch.cuda.is_available():
        continue
    model = nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters())
    getattr(model, what)()
    report(f"model.{what}()?", model, optimizer)
model = nn.Linear(2, 2)
optimizer = torch.optim.Adam(model.parameters())
model.to("meta")
report('model.to("meta")?', model, optimizer)

model = nn.Linear(2, 2)
optimizer = torch.optim.Adam(model.parameters())
model(torch.ones(1, 2)).sum().backward()
optimizer.step()
model.double()
state = optimizer.state[model.weight]["exp_avg"].dtype
print("cast after the first step: weights", model.weight.dtype, "but Adam's averages", state)
