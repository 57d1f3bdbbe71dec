import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

TASKS = {"age": 1, "gender": 2, "mood": 4}


class MultiHead(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(9, 24), nn.ReLU())
        self.heads = {name: nn.Linear(24, size) for name, size in tasks.items()}  # <- TL303

    def forward(self, x):
        features = self.trunk(x)
        return {name: head(features) for name, head in self.heads.items()}


class Trainer:
    def __init__(self, model, lr=1e-3):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)

    def loss(self, outputs, age, gender, mood):
        return (
            nn.functional.mse_loss(outputs["age"].squeeze(1), age)
            + nn.functional.cross_entropy(outputs["gender"], gender)
            + nn.functional.cross_entropy(outputs["mood"], mood)
        )

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            for x, *targets in loader:
                loss = self.loss(self.model(x), *targets)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            print(epoch, loss.item())


torch.manual_seed(0)
dataset = TensorDataset(
    torch.randn(64, 9), torch.rand(64), torch.randint(0, 2, (64,)), torch.randint(0, 4, (64,))
)
Trainer(MultiHead(TASKS)).fit(DataLoader(dataset, batch_size=16, shuffle=True), epochs=2)
