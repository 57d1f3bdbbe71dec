import torch
import torch.nn as nn
import torch.nn.functional as fn


class AgePredictor(nn.Module):
    """Predicts a distribution over age bins."""

    def __init__(self, bins=10):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(16, 32), nn.ReLU())
        self.head = nn.Linear(32, bins)

    def forward(self, x):
        return self.head(self.trunk(x))


def soft_labels(ages, bins=10, sigma=1.0):
    grid = torch.arange(bins).float()
    return torch.softmax(-((grid[None] - ages[:, None]) ** 2) / (2 * sigma**2), dim=1)


def main():
    torch.manual_seed(3)
    torch.set_num_threads(1)
    x = torch.randn(160, 16)
    ages = (x[:, 0].sigmoid() * 10).floor()
    targets = soft_labels(ages)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, targets), batch_size=32, shuffle=True
    )
    model = AgePredictor()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(3):
        for features, distribution in loader:
            optimizer.zero_grad()
            prediction = model(features)
            loss = fn.kl_div(prediction, distribution, reduction="batchmean")  # <- TL405
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
