# A hook counts the outputs; `.forward` goes past it.
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = torch.randn(64, 8), torch.randint(0, 2, (64, 1)).float()
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)

model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
calls = []
model.register_forward_hook(lambda module, args, output: calls.append(output.shape))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

for epoch in range(2):
    for xb, yb in loader:
        logits = model.forward(xb)  # <- TL205
        loss = criterion(logits, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("epoch", epoch, "loss", loss.item(), "calls seen by the hook:", len(calls))
