import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class SqueezeExcite(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.fc = nn.Sequential(nn.Linear(channels, 4), nn.ReLU(), nn.Linear(4, channels), nn.Sigmoid())

    def forward(self, x):
        return x * self.fc(x.mean(dim=(2, 3)))[:, :, None, None]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.se = SqueezeExcite(8)
        self.fc = nn.Linear(8, 3)

    def forward(self, x):
        x = self.se(F.silu(self.conv(x)))
        return self.fc(x.mean(dim=(2, 3)))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(128, 1, 6, 6)
    y = (x.mean(dim=(1, 2, 3), keepdim=False)[:, None] > torch.tensor([-0.1, 0.0, 0.1])).float()
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)

    teacher, model = Net().eval(), Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(2):
        for images, labels in loader:
            logits = model(images)
            with torch.no_grad():
                soft = torch.sigmoid(teacher(images) / 2)
            loss = F.binary_cross_entropy_with_logits(logits, labels)
            loss = loss + F.binary_cross_entropy_with_logits(logits / 2, soft)
            p = torch.sigmoid(logits)
            focal = ((1 - p) ** 2 * F.logsigmoid(logits) * -labels).mean()
            dice = 1 - (2 * (p * labels).sum() + 1) / (p.sum() + labels.sum() + 1)
            total = loss + focal + dice
            optimizer.zero_grad()
            total.backward()
            optimizer.step()
            predicted = p.detach() > 0.5
            print(total.item(), (predicted == labels.bool()).float().mean().item())


if __name__ == "__main__":
    main()
