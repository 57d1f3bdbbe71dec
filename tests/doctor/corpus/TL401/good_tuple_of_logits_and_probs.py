import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class MnistNet(nn.Module):
    """Returns (logits, probabilities), and log-probabilities of an auxiliary head."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(36, 32), nn.ReLU())
        self.head = nn.Linear(32, 4)
        self.auxiliary = nn.Linear(32, 2)

    def forward(self, x):
        hidden = self.body(x.view(x.size(0), -1))
        logits = self.head(hidden)
        return logits, F.softmax(logits, dim=1), F.log_softmax(self.auxiliary(hidden), dim=1)


torch.manual_seed(0)
torch.set_num_threads(1)
images = torch.randn(160, 1, 6, 6)
labels = (images[:, 0, 0, 0] > 0).long() * 2 + (images[:, 0, 1, 1] > 0).long()
loader = DataLoader(TensorDataset(images, labels), batch_size=16, shuffle=True)

model = MnistNet()
ce = nn.CrossEntropyLoss()
nll = nn.NLLLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

for epoch in range(3):
    entropy = 0.0
    for data, target in loader:
        logits, probs, side = model(data)
        log_of_probs = torch.log(probs + 1e-8)
        loss = ce(logits, target) + 0.5 * nll(side, target // 2) + 0.1 * nll(log_of_probs, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        entropy -= (probs.detach() * log_of_probs.detach()).sum(dim=1).mean().item()
    print(f"epoch {epoch}: loss {loss.item():.3f}, entropy {entropy / len(loader):.3f}")
