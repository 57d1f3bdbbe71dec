import torch
from torch import nn

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.randn(3200, 10).to(device, non_blocking=True)
target = x[:, :1] * 2
model = nn.Linear(10, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, fused=True)
for step in range(100):
    index = torch.randint(0, 3200, (32,), device=device)
    loss = nn.functional.mse_loss(model(x[index]), target[index])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
