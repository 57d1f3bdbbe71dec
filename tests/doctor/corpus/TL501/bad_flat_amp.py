import torch
import torch.nn as nn
from torch.amp import GradScaler, autocast

torch.manual_seed(0)
device = "cpu"
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4)).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = GradScaler(device, init_scale=1024.0)
dataset = torch.utils.data.TensorDataset(torch.randn(64, 10), torch.randint(0, 4, (64,)))
loader = torch.utils.data.DataLoader(dataset, batch_size=16, shuffle=True)

for epoch in range(2):
    for data, target in loader:
        optimizer.zero_grad()
        with autocast(device, dtype=torch.float16):
            loss = criterion(model(data), target)
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # <- TL501
        scaler.step(optimizer)
        scaler.update()
    print(epoch, loss.item(), scaler.get_scale())
