"""A class whose network comes with a method of its own; the best weights of it are kept."""
import os

import torch
from torch import nn


class Experiment:
    def __init__(self):
        self.model = None
        self.optimizer = None

    def build(self, kind):
        self.model = kind(4, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def fit(self, rows):
        best_loss, best = float("inf"), None
        for x, y in rows:
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            if loss.item() < best_loss:
                best_loss = loss.item()
                best = self.model.state_dict()  # <- TL805
        torch.save(best, "best.pt")
        return best_loss


if __name__ == "__main__":
    torch.manual_seed(0)
    experiment = Experiment()
    rows = [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(8)]
    for name in os.environ.get("STAGES", "build fit").split():
        print(getattr(experiment, name)({"build": nn.Linear, "fit": rows}[name]))
