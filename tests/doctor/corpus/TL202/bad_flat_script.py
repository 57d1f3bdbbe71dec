import torch as T
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

T.manual_seed(0)
X = T.randn(200, 13)
Y = X @ T.randn(13, 1) + 0.1 * T.randn(200, 1)
train_dl = DataLoader(TensorDataset(X[:160], Y[:160]), batch_size=20, shuffle=True)
valid_dl = DataLoader(TensorDataset(X[160:], Y[160:]), batch_size=20)

model = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 1))
loss_fn = nn.MSELoss()
optimizer = T.optim.RMSprop(model.parameters(), lr=1e-3)

best = float("inf")
for epoch in range(3):
    for xb, yb in train_dl:
        pred = model(xb)
        loss = loss_fn(pred, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    valid_loss = 0.0
    with T.no_grad():
        for xb, yb in valid_dl:
            pred = model(xb)  # <- TL202
            valid_loss += loss_fn(pred, yb).item() * len(xb)
    valid_loss /= len(valid_dl.dataset)
    if valid_loss < best:
        best = valid_loss
    print(f"epoch {epoch}: valid {valid_loss:.4f} (best {best:.4f})")
