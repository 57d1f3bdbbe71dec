import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
X = torch.randn(320, 10)
y = (X[:, 0] * X[:, 1] > 0).float()

train_dl = DataLoader(TensorDataset(X[:256], y[:256]), batch_size=32, shuffle=True)
valid_dl = DataLoader(TensorDataset(X[256:], y[256:]), batch_size=32)

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid())
loss_fn = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(5):
    model.train()
    for xb, yb in train_dl:
        pred = model(xb)
        loss = loss_fn(pred.squeeze(1), yb)  # <- TL402
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    model.eval()
    hits = 0
    with torch.no_grad():
        for xb, yb in valid_dl:
            hits += ((model(xb).squeeze(1) > 0.5) == (yb > 0.5)).sum().item()
    print(f"epoch {epoch} loss {loss.item():.4f} valid acc {hits / 64:.3f}")
