import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(5, 3)

    def forward_loss(self, batch):
        inputs, labels = batch
        return nn.functional.cross_entropy(self.linear(inputs), labels, reduction="sum"), len(labels)


class ModelTrainer:
    def __init__(self, model):
        self.model = model

    def train_custom(self, loader, epochs):
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        for epoch in range(epochs):
            self.model.train()
            train_loss, train_samples = 0.0, 0
            for batch in loader:
                self.optimizer.zero_grad()
                loss, datapoint_count = self.model.forward_loss(batch)
                train_samples += datapoint_count
                train_loss += loss.item()
                loss.backward()
                self.optimizer.step()
            print(epoch, train_loss / train_samples)


torch.manual_seed(0)
data = [(torch.randn(8, 5), torch.randint(0, 3, (8,))) for _ in range(5)]
kind = globals()["Tagger"]
ModelTrainer(kind()).train_custom(data, epochs=2)
