import os
import tempfile

import torch
from torch import nn, optim


class Trainer:
    def __init__(self, model, directory):
        self.model = model
        self.directory = directory
        self.optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        self.epoch = 0

    @property
    def file(self):
        return os.path.join(self.directory, "last.ckpt")

    def save(self):
        torch.save(
            {
                "epoch": self.epoch,
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
            },
            self.file,
        )

    def load(self):
        with open(self.file, "rb") as stream:
            state = torch.load(stream, weights_only=False)  # <- TL802
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.epoch = state["epoch"]

    def fit(self, x, y, epochs):
        while self.epoch < epochs:
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            self.epoch += 1
            self.save()


if __name__ == "__main__":
    x, y = torch.randn(16, 2), torch.randn(16, 1)
    with tempfile.TemporaryDirectory() as folder:
        Trainer(nn.Linear(2, 1), folder).fit(x, y, 2)
        trainer = Trainer(nn.Linear(2, 1), folder)
        trainer.load()
        trainer.fit(x, y, 4)
