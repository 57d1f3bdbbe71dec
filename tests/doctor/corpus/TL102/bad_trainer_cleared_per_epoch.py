import torch
from torch import nn


class Trainer:
    def __init__(self, window):
        self.window = window
        self.model = nn.Linear(5, 3)
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def update(self):
        self.optimizer.step()  # <- TL102

    def epoch(self, batches):
        self.optimizer.zero_grad()
        for number, x in enumerate(batches, start=1):
            loss = nn.functional.cross_entropy(self.model(x), x[:, :3].argmax(1))
            (loss / self.window).backward()
            if number % self.window == 0:
                self.update()
        return loss.item()


torch.manual_seed(0)
trainer = Trainer(2)
data = torch.utils.data.DataLoader(torch.randn(64, 5), batch_size=8)
for _ in range(3):
    print(trainer.epoch(data))
