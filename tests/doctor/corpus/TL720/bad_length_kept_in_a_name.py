import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(30, 2), torch.randn(30, 1)), 5, shuffle=True)
size = len(loader.dataset)
model = nn.Linear(2, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
epoch = 0
while epoch < 2:
    total_loss = 0
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.smooth_l1_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total_loss += loss.detach().item()
    average = total_loss / size  # <- TL720
    epoch += 1
