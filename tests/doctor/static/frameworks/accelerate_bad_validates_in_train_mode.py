import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator()
net = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters())
train = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(512, 8), torch.randn(512, 1)), 32, shuffle=True
)
valid = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(128, 8), torch.randn(128, 1)), 32
)
net, opt, train, valid = accelerator.prepare(net, opt, train, valid)
for epoch in range(8):
    net.train()
    for x, y in train:
        opt.zero_grad()
        accelerator.backward(nn.functional.mse_loss(net(x), y))
        opt.step()
    errors = []
    with torch.no_grad():
        for x, y in valid:
            guess, y = accelerator.gather_for_metrics((net(x), y))  # <- TL202
            errors.append((guess - y).abs().flatten())
    accelerator.print(torch.cat(errors).mean().item())
