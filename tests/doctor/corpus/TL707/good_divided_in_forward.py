import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 3)

    def forward(self, images):
        return self.fc(images.float().flatten(1) / 255)


torch.manual_seed(0)
images = torch.randint(0, 256, (80, 8, 8), dtype=torch.uint8)
loader = DataLoader(TensorDataset(images, torch.randint(0, 3, (80,))), batch_size=16, shuffle=True)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
