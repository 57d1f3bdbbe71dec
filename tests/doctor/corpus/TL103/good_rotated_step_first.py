import torch
from torch import nn

model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_fn = nn.MSELoss()
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(60, 6), torch.randn(60, 1)), batch_size=10, shuffle=True
)

for epoch in range(2):
    for i, (x, y) in enumerate(loader):
        if i > 0:
            optimizer.step()
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
    optimizer.step()
    print(epoch, loss.item())
