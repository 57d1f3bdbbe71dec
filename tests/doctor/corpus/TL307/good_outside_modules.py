"""Parameters without a module: what is moved here is read, not trained."""

import torch
import torch.nn as nn


class Calibrator:
    def __init__(self):
        self.temperature = nn.Parameter(torch.ones(1))
        self.optimizer = torch.optim.LBFGS([self.temperature], lr=0.1, max_iter=10)

    def fit(self, logits, labels):
        def closure():
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(logits / self.temperature, labels)
            loss.backward()
            return loss

        self.optimizer.step(closure)
        self.result = self.temperature.to("cpu").double()
        return self


torch.manual_seed(0)
logits, labels = 4 * torch.randn(60, 3), torch.randint(0, 3, (60,))
print(Calibrator().fit(logits, labels).result.item())
