"""A graph network on all nodes at once; the classes of some nodes are known. No loader."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
nodes, features, classes = 40, 6, 3
x, y = torch.randn(nodes, features), torch.randint(0, classes, (nodes,))
edges = torch.rand(nodes, nodes) < 0.1
adjacency = (edges | edges.T | torch.eye(nodes, dtype=torch.bool)).float()
adjacency = adjacency / adjacency.sum(1, keepdim=True)
known = torch.rand(nodes) < 0.5


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(features, 8), nn.Linear(8, classes)

    def forward(self, x):
        return self.second(adjacency @ F.relu(self.first(adjacency @ x)))


model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(10):
    optimizer.zero_grad()
    scores = F.log_softmax(model(x), dim=0)  # <- TL408
    loss = F.nll_loss(scores, y)
    loss.backward()
    optimizer.step()
