import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Loss(nn.Module):
    def forward(self, scores, y):
        log_p = torch.log(torch.softmax(scores, 0))  # <- TL408
        return -log_p[torch.arange(len(y)), y].mean()


x = torch.randn(60, 5)
loader = DataLoader(TensorDataset(x, x[:, :3].argmax(1)), batch_size=20, shuffle=True)
net, criterion = nn.Linear(5, 3), Loss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    for inputs, targets in loader:
        optimizer.zero_grad()
        criterion(net(inputs), targets).backward()
        optimizer.step()
