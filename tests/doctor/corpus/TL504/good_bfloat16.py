import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
ds = torch.utils.data.TensorDataset(torch.randn(48, 6), torch.randint(0, 2, (48,)))
for x, y in torch.utils.data.DataLoader(ds, batch_size=12, shuffle=True):
    optimizer.zero_grad()
    with torch.autocast("cpu"):  # bfloat16 on a CPU: the range of float32
        loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
print(loss.item())
