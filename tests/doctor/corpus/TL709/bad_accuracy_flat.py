import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

BATCH = 64
torch.manual_seed(0)
x = torch.randn(1250, 10)
y = (x[:, 0] > 0).long()
train_dl = DataLoader(TensorDataset(x[:1024], y[:1024]), batch_size=BATCH, shuffle=True)
valid_ds = TensorDataset(torch.randn(150, 10), torch.randint(0, 2, (150,)))
valid_dl = DataLoader(valid_ds, batch_size=BATCH)

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
opt = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

for epoch in range(2):
    model.train()
    for xb, yb in train_dl:
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        opt.step()
        opt.zero_grad()

    model.eval()
    accuracy = 0
    with torch.no_grad():
        for xb, yb in valid_dl:
            preds = torch.argmax(model(xb), dim=1)
            accuracy += (preds == yb).float().mean().item()
    accuracy /= len(valid_dl)  # <- TL709
    print(f"epoch {epoch}: accuracy {accuracy:.4f}")
