"""The cosine's length counts micro-batches; each epoch ends with one pass over held-out rows."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS, WINDOW = 6, 4
torch.manual_seed(0)
x, held = torch.randn(256, 6), torch.randn(64, 6)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS * len(loader))  # <- TL605
for epoch in range(EPOCHS):
    model.train()
    for number, (rows, sums) in enumerate(loader, start=1):
        (nn.functional.mse_loss(model(rows), sums) / WINDOW).backward()
        if number % WINDOW == 0:
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        print(epoch, nn.functional.mse_loss(model(held), held.sum(1, keepdim=True)).item())
