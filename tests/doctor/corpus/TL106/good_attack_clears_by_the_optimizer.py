"""An attack on a network in train mode, as it came out of the file: its optimizer is never
stepped."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.utils.data.TensorDataset(torch.rand(24, 6), torch.randint(0, 2, (24,)))
fooled = 0
for inputs, targets in torch.utils.data.DataLoader(data, batch_size=8):
    inputs.requires_grad_()
    optimizer.zero_grad()
    F.cross_entropy(net(inputs), targets).backward()
    attacked = inputs.detach() + 0.1 * inputs.grad.sign()
    with torch.no_grad():
        fooled += (net(attacked).argmax(1) != targets).sum().item()
print(fooled)
