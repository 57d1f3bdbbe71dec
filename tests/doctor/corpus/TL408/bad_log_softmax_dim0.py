import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(36, 32)
        self.fc2 = nn.Linear(32, 4)

    def forward(self, x):
        x = x.view(-1, 36)
        x = F.relu(self.fc1(x))
        x = self.fc2(x)
        return F.log_softmax(x, dim=0)  # <- TL408


torch.manual_seed(0)
torch.set_num_threads(1)
images = torch.randn(256, 1, 6, 6)
labels = images.view(256, -1)[:, :4].argmax(dim=1)
train_loader = DataLoader(TensorDataset(images, labels), batch_size=32, shuffle=True)

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(3):
    for batch_idx, (data, target) in enumerate(train_loader):
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
    print(f"Epoch {epoch}: {loss.item():.4f}")
