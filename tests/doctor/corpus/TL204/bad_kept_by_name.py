import torch
from torch import nn


def fit(steps=60):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    record = {"loss": [], "answer": []}
    fixed = torch.randn(64, 4)
    for _ in range(steps):
        inputs = torch.randn(16, 4)
        loss = nn.functional.cross_entropy(model(inputs), (inputs[:, 0] > 0).long())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        record["loss"].append(loss.item())
        answer = model(fixed)
        record["answer"].append(answer)  # <- TL204
    return record


print(len(fit()["answer"]))
