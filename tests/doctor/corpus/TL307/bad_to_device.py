import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class ScaledHead(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(classes, features) * 0.1)
        self.scale = nn.Parameter(torch.tensor(10.0)).to(device)  # <- TL307

    def forward(self, x):
        return self.scale * F.linear(F.normalize(x), F.normalize(self.weight))


def main():
    torch.manual_seed(0)
    x, y = torch.randn(64, 8), torch.randint(0, 4, (64,))
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    model = ScaledHead(8, 4).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(2):
        for features, labels in loader:
            features, labels = features.to(device), labels.to(device)
            loss = F.cross_entropy(model(features), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
