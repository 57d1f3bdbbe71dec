import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
x = torch.ones(1, 4)

model.eval()
print("eval() alone: output requires grad:", model(x).requires_grad)

model.train()
with torch.no_grad():
    print("no_grad() alone: outputs set to zero:", (model(x.repeat(1000, 1)) == 0).sum().item())

model.eval()
with torch.no_grad():
    print("both: requires grad:", model(x).requires_grad)
    print("both: outputs set to zero:", (model(x.repeat(1000, 1)) == 0).sum().item())
