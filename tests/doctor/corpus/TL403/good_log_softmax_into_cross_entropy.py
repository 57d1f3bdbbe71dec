import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, 16)
        self.fc2 = nn.Linear(16, 3)

    def forward(self, x):
        return F.log_softmax(self.fc2(torch.tanh(self.fc1(x))), dim=1)


x = torch.randn(150, 8)
y = x[:, :3].argmax(dim=1)
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(x, y), batch_size=30, shuffle=True
)
net = Net()
optimizer = torch.optim.Adam(net.parameters())
criterion = nn.CrossEntropyLoss()

for epoch in range(3):
    for xb, yb in loader:
        loss = criterion(net(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
