import copy

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, classes=100):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(7, 24), nn.ReLU())
        self.fc = nn.Linear(24, classes)

    def forward(self, x):
        return self.fc(self.body(x))


torch.manual_seed(0)
x, y = torch.randn(64, 7), torch.randint(0, 3, (64,))
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
model = Net()
model.fc = nn.Linear(24, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
model = model.to("cuda" if torch.cuda.is_available() else "cpu").double().float()
for epoch in range(2):
    for inputs, targets in loader:
        device = next(model.parameters()).device
        loss = nn.functional.cross_entropy(model(inputs.to(device)), targets.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())

# For features only: what is cut off afterwards needs no training.
extractor = copy.deepcopy(model)
extractor.fc = nn.Identity()
with torch.no_grad():
    print(extractor(x.to(device)).shape)
