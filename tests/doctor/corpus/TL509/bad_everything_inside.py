import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(48, 6), torch.randint(0, 3, (48,))), batch_size=12, shuffle=True)
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 3))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for epoch in range(2):
    for x, y in loader:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            output = model(x)
            loss = criterion(output, y)
            optimizer.zero_grad()
            loss.backward()  # <- TL509
            optimizer.step()
    print(epoch, loss.item())
