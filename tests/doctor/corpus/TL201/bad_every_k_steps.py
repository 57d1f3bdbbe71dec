# Evaluates every few steps, inside the loop over batches.
import torch as th
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

th.manual_seed(7)
EVAL_EVERY = 4
x = th.randn(160, 10)
y = (x[:, :3].sum(1, keepdim=True) > 0).float()
train_dl = DataLoader(TensorDataset(x[:128], y[:128]), batch_size=16, shuffle=True)
val_dl = DataLoader(TensorDataset(x[128:], y[128:]), batch_size=16)

net = nn.Sequential(nn.Linear(10, 32), nn.GELU(), nn.Dropout(0.2), nn.Linear(32, 1))
opt = th.optim.Adam(net.parameters(), lr=3e-3)
bce = nn.BCEWithLogitsLoss()

for epoch in range(2):
    net.train()
    for step, (xb, yb) in enumerate(train_dl):
        loss = bce(net(xb), yb)  # <- TL201
        opt.zero_grad()
        loss.backward()
        opt.step()

        if (step + 1) % EVAL_EVERY == 0:
            net.eval()
            hits, seen = 0, 0
            with th.no_grad():
                for xv, yv in val_dl:
                    hits += ((net(xv) > 0) == yv.bool()).sum().item()
                    seen += len(yv)
            print(f"epoch {epoch} step {step + 1}: loss {loss.item():.3f}, val acc {hits / seen:.3f}")
