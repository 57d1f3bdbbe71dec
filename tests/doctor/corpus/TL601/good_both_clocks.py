import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(192, 6)
y = x[:, :3].argmax(dim=1)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)

EPOCHS = 4
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
warmup = LinearLR(optimizer, start_factor=0.1, total_iters=len(loader))
scheduler = CosineAnnealingLR(optimizer, T_max=EPOCHS - 1)

for epoch in range(EPOCHS):
    if epoch > 0:
        scheduler.step()
    for data, target in loader:
        loss = nn.functional.cross_entropy(model(data), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch == 0:
            warmup.step()
    print(epoch, loss.item(), optimizer.param_groups[0]["lr"])
