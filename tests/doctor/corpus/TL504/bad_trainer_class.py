import torch
from torch import nn
from torch.amp import autocast


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        self.amp_dtype = torch.float16

    def compute_loss(self, batch):
        with autocast("cpu", dtype=self.amp_dtype):
            out = self.model(batch["x"])
            return nn.functional.mse_loss(out, batch["y"].to(out.dtype))

    def train_step(self, batch):
        self.optimizer.zero_grad()
        loss = self.compute_loss(batch)
        loss.backward()  # <- TL504
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()


torch.manual_seed(0)
trainer = Trainer(nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2)), lr=1e-2)
for i in range(10):
    value = trainer.train_step({"x": torch.randn(8, 4), "y": torch.randn(8, 2)})
print(value)
