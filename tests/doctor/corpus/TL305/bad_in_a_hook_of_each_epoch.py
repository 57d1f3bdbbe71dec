"""What begins an epoch makes the optimizer that the batches step with."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ModelRun:
    def __init__(self, model, epochs):
        self.model = model
        self.num_epochs = epochs

    def begin_epoch(self):
        self.model.train()
        self.reset_optimizer()

    def reset_optimizer(self):
        self.optimizer = torch.optim.RMSprop(self.model.parameters(), lr=1e-3)  # <- TL305

    def fit(self, loader):
        for epoch in range(self.num_epochs):
            self.begin_epoch()
            for x, y in loader:
                loss = nn.functional.mse_loss(self.model(x), y)
                loss.backward()
                self.optimizer.step()
                self.optimizer.zero_grad()


torch.manual_seed(0)
data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
ModelRun(nn.Linear(4, 1), 3).fit(DataLoader(data, batch_size=16, shuffle=True))
