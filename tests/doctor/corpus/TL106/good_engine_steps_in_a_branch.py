"""With DeepSpeed, `accelerator.backward` runs the engine's step: the program steps where it is off."""
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(cpu=True)
model = nn.Linear(4, 4)
optimizer = torch.optim.AdamW(model.parameters())
data = TensorDataset(torch.randn(24, 4), torch.randn(24, 4))
loader = DataLoader(data, batch_size=4, shuffle=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for epoch in range(2):
    for x, y in loader:
        accelerator.backward(nn.functional.mse_loss(model(x), y))
        if accelerator.state.deepspeed_plugin is None:
            optimizer.step()
            optimizer.zero_grad()
