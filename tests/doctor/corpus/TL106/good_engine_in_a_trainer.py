"""A trainer that leaves the step to the engine where there is one."""
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, loader):
        self.accelerator = Accelerator(cpu=True)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.model, self.optimizer, self.loader = self.accelerator.prepare(
            model, self.optimizer, loader
        )

    @property
    def engine(self):
        return self.accelerator.state.deepspeed_plugin

    def fit(self, epochs):
        for _ in range(epochs):
            for x, y in self.loader:
                loss = nn.functional.mse_loss(self.model(x), y)
                self.accelerator.backward(loss)
                if self.engine is not None:
                    continue
                self.optimizer.step()
                self.optimizer.zero_grad()


data = TensorDataset(torch.randn(24, 4), torch.randn(24, 4))
Trainer(nn.Linear(4, 4), DataLoader(data, batch_size=4, shuffle=True)).fit(2)
