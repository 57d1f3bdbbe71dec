"""One model goes through all rounds: what is saved in the end are its last weights."""
import torch
from torch import nn


def fit(model, optimizer, x, y):
    model.train()
    for rows in torch.randperm(len(x)).split(16):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()


def score(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


torch.manual_seed(0)
x, y = torch.randn(120, 4), torch.randint(0, 2, (120,))
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 2))
best, best_score = None, 0.0
for rate in (0.1, 0.03, 0.01):
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    fit(model, optimizer, x[:80], y[:80])
    found = score(model, x[80:], y[80:])
    if found > best_score:
        best, best_score = model.state_dict(), found  # <- TL805
if best is not None:
    torch.save(best, "best.pt")
print(best_score)
