"""In-batch negatives: similarities between 0 and 1 are scaled before the cross-entropy."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class RankingLoss(nn.Module):
    def __init__(self, encoder, scale=10.0, activation=None):
        super().__init__()
        self.encoder = encoder
        self.scale = scale
        self.activation = activation or nn.Sigmoid()
        self.cross_entropy_loss = nn.CrossEntropyLoss()

    def forward(self, anchors, positives):
        scores = self.encoder(anchors) @ self.encoder(positives).T
        logits = self.activation(scores)
        if self.scale:
            logits = logits * self.scale
        labels = torch.arange(len(anchors))
        return self.cross_entropy_loss(logits, labels)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    anchors = torch.randn(96, 8)
    positives = anchors + 0.1 * torch.randn(96, 8)
    loader = DataLoader(TensorDataset(anchors, positives), batch_size=16, shuffle=True)
    encoder = nn.Linear(8, 6)
    loss_fn = RankingLoss(encoder)
    optimizer = torch.optim.Adam(loss_fn.parameters(), lr=1e-3)
    for epoch in range(3):
        for anchor, positive in loader:
            optimizer.zero_grad()
            loss = loss_fn(anchor, positive)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
