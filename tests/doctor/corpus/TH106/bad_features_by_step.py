import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(24, width), nn.Tanh())
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        features = self.encoder(x)
        return features, self.head(features)


class Trainer:
    def __init__(self, model, loader):
        self.model = model
        self.loader = loader
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        self.features = {}
        self.step = 0

    def run_epoch(self):
        self.model.train()
        total = 0.0
        for x, y in self.loader:
            features, prediction = self.model(x)
            loss = F.mse_loss(prediction, y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.features[self.step] = features.detach().numpy()  # <- TH106
            self.step += 1
            total += loss.item()
        return total / len(self.loader)


def main():
    torch.manual_seed(0)
    x = torch.randn(12_288, 24)
    data = TensorDataset(x, x.norm(dim=1, keepdim=True))
    loader = DataLoader(data, batch_size=None, sampler=torch.utils.data.BatchSampler(
        torch.utils.data.RandomSampler(data), batch_size=512, drop_last=False))
    trainer = Trainer(Net(256), loader)
    for epoch in range(16):
        print(epoch, trainer.run_epoch())


if __name__ == "__main__":
    main()
