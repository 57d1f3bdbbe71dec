import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(5, width), nn.ReLU())
        self.head = nn.Linear(width, 2)
        self.prompt = nn.Parameter(torch.zeros(1, 5))

    def forward(self, x):
        return self.head(self.features(x + self.prompt))


def main():
    torch.manual_seed(1)
    model = Classifier()
    model.features.requires_grad_(False)
    model.head.requires_grad_(False)
    optimizer = torch.optim.Adam(model.head.parameters(), lr=1e-3)  # <- TL309
    criterion = nn.CrossEntropyLoss()
    i = 0
    while i < 5:
        optimizer.zero_grad()
        loss = criterion(model(torch.randn(8, 5)), torch.randint(0, 2, (8,)))
        loss.backward()
        optimizer.step()
        i += 1


main()
