"""A graph network; one of its two dropouts forgets the mode."""

import torch
from torch import nn
from torch.nn import functional as fn


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super().__init__()
        self.w1 = nn.Linear(nfeat, nhid, bias=False)
        self.w2 = nn.Linear(nhid, nclass, bias=False)
        self.dropout = dropout

    def forward(self, x, adj):
        x = fn.dropout(x, self.dropout, training=self.training)
        x = fn.relu(adj @ self.w1(x))
        x = fn.dropout(x, self.dropout)  # <- TL206
        return fn.log_softmax(adj @ self.w2(x), dim=1)


def main():
    torch.manual_seed(0)
    features, labels = torch.randn(40, 8), torch.randint(0, 3, (40,))
    adjacency = torch.eye(40) + (torch.rand(40, 40) > 0.9).float()
    adjacency = adjacency / adjacency.sum(1, keepdim=True)
    idx_train, idx_val = torch.arange(0, 30), torch.arange(30, 40)
    model = GCN(nfeat=8, nhid=16, nclass=3, dropout=0.5)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for epoch in range(5):
        model.train()
        optimizer.zero_grad()
        output = model(features, adjacency)
        loss = fn.nll_loss(output[idx_train], labels[idx_train])
        loss.backward()
        optimizer.step()

        model.eval()
        with torch.no_grad():
            output = model(features, adjacency)
        accuracy = (output[idx_val].argmax(1) == labels[idx_val]).float().mean().item()
        print("epoch", epoch, "loss", loss.item(), "val accuracy", accuracy)


main()
