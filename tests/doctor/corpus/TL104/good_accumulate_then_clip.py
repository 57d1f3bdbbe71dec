import torch
import torch.nn as nn
import torch.nn.functional as F


class Engine:
    def __init__(self, model, accum_steps=2, clip=1.0):
        self.model = model
        self.accum_steps = accum_steps
        self.clip = clip
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def clip_gradients(self):
        if self.clip > 0:
            return nn.utils.clip_grad_norm_(self.model.parameters(), self.clip).item()
        return 0.0

    def train_epoch(self, batches):
        self.optimizer.zero_grad()
        for i, batch in enumerate(batches):
            loss = F.mse_loss(self.model(batch["x"]), batch["y"]) / self.accum_steps
            loss.backward()
            if (i + 1) % self.accum_steps == 0 or i + 1 == len(batches):
                norm = self.clip_gradients()
                self.optimizer.step()
                self.optimizer.zero_grad()
        return norm


torch.manual_seed(0)
model = nn.Linear(3, 2)
batches = [{"x": torch.randn(8, 3), "y": torch.randn(8, 2)} for _ in range(7)]
engine = Engine(model)
for epoch in range(2):
    print(engine.train_epoch(batches))
