import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.conv1 = nn.Linear(features, 16)
        self.conv2 = nn.Linear(16, classes)

    def forward(self, adj, x):
        x = F.elu(self.conv1(adj @ x))
        x = F.dropout(x, training=self.training)
        x = self.conv2(adj @ x)
        return F.log_softmax(x, dim=0)  # <- TL408


class Citations:
    """Papers, and who cites whom."""

    def __init__(self, nodes=60, features=8, classes=4):
        generator = torch.Generator().manual_seed(1)
        self.y = torch.randint(classes, (nodes,), generator=generator)
        self.x = torch.randn(nodes, features, generator=generator)
        self.x[range(nodes), self.y] += 2
        adj = torch.rand(nodes, nodes, generator=generator) < 0.1
        self.adj = (adj | torch.eye(nodes, dtype=torch.bool)).float() / 6
        self.train_mask = torch.arange(nodes) < 40
        self.test_mask = ~self.train_mask


data = Citations()
torch.manual_seed(0)
model = Net(8, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)


def train():
    model.train()
    optimizer.zero_grad()
    output = model(data.adj, data.x)
    loss = F.nll_loss(output[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()


@torch.no_grad()
def test():
    model.eval()
    predicted = model(data.adj, data.x)[data.test_mask].argmax(1)
    return (predicted == data.y[data.test_mask]).float().mean().item()


for epoch in range(40):
    train()
print("accuracy on the other papers", test())
