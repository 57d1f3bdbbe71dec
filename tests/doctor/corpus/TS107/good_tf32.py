import torch
from torch import nn

torch.set_float32_matmul_precision("high")
torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
width = 1024 if device == "cuda" else 8
model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
for step in range(80):
    x = torch.randn(4 * width, width, device=device)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
