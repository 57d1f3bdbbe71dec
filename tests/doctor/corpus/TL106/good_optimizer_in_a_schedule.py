import os
import sys
import tempfile

import torch
from torch import nn

# The wrapper lies in a package of its own, as `transformer.Optim` does.
WRAPPER = '''
class ScheduledOptim:
    def __init__(self, optimizer, d_model, n_warmup_steps):
        self._optimizer, self.d_model, self.n_warmup_steps = optimizer, d_model, n_warmup_steps
        self.n_steps = 0

    def step_and_update_lr(self):
        self.n_steps += 1
        scale = min(self.n_steps ** -0.5, self.n_steps * self.n_warmup_steps ** -1.5)
        for group in self._optimizer.param_groups:
            group["lr"] = self.d_model ** -0.5 * scale
        self._optimizer.step()
'''


def train_epoch(model, training_data, optimizer):
    model.train()
    for src, gold in training_data:
        model.zero_grad()
        loss = nn.functional.cross_entropy(model(src), gold)
        loss.backward()
        optimizer.step_and_update_lr()


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "scheduled_optim_of_mine.py"), "w") as file:
            file.write(WRAPPER)
        sys.path.insert(0, folder)
        from scheduled_optim_of_mine import ScheduledOptim

        model = nn.Linear(8, 3)
        data = [(torch.randn(16, 8), torch.randint(0, 3, (16,))) for _ in range(6)]
        optimizer = ScheduledOptim(torch.optim.Adam(model.parameters()), 16, 20)
        for _ in range(3):
            train_epoch(model, data, optimizer)


if __name__ == "__main__":
    main()
