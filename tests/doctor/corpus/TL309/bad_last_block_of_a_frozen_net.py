import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.layer4, self.fc = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 100)

    def forward(self, x):
        return self.fc(torch.relu(self.layer4(torch.relu(self.stem(x)))))


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(24, 6), torch.randint(0, 3, (24,))), 8, shuffle=True)
model = Net()
for param in model.parameters():
    param.requires_grad = False
model.fc = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.layer4.parameters(), lr=0.01, momentum=0.9)  # <- TL309

for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
