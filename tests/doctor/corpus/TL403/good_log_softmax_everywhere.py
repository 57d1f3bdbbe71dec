import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(10, 20)
        self.fc2 = nn.Linear(20, 4)

    def forward(self, x):
        return F.log_softmax(self.fc2(F.relu(self.fc1(x))), dim=1)


x = torch.randn(160, 10)
y = x[:, :4].argmax(dim=1)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)

net = Net()
sequential = nn.Sequential(nn.Linear(10, 4), nn.LogSoftmax(dim=-1))
plain = nn.Linear(10, 4)
log_softmax = nn.LogSoftmax(dim=1)
criterion = nn.NLLLoss()
optimizer = torch.optim.SGD(
    [*net.parameters(), *sequential.parameters(), *plain.parameters()], lr=0.1, momentum=0.9
)

for epoch in range(3):
    for data, target in loader:
        logits = plain(data)
        normalised = logits - logits.logsumexp(dim=1, keepdim=True)
        loss = (
            criterion(net(data), target)
            + criterion(sequential(data), target)
            + F.nll_loss(log_softmax(logits), target)
            + F.nll_loss(normalised, target)
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
