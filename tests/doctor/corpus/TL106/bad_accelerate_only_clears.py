"""Accelerate's backward does not step: that is left to the program, which only clears."""
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(cpu=True)
model = nn.Linear(4, 4)
optimizer = torch.optim.AdamW(model.parameters())
data = TensorDataset(torch.randn(48, 4), torch.randn(48, 4))
loader = DataLoader(data, batch_size=4, shuffle=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for epoch in range(2):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        accelerator.backward(loss)  # <- TL106
        optimizer.zero_grad()
