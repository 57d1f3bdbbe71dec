import torch
from torch import nn


class AMPTrainer:
    def __init__(self, model, lr=1e-3, mixed_precision=False):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.mixed_precision = mixed_precision and torch.cuda.is_available()
        self.scaler = torch.amp.GradScaler("cuda", enabled=self.mixed_precision)

    def optimize(self, loss):
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.scaler.step(self.optimizer)  # <- TL502

    def run(self, batches, epochs):
        for epoch in range(epochs):
            for batch in batches:
                with torch.autocast("cuda", enabled=self.mixed_precision):
                    loss = nn.functional.l1_loss(self.model(batch["x"]), batch["y"])
                self.optimize(loss)
            print(epoch, loss.item())


torch.manual_seed(3)
batches = [{"x": torch.randn(8, 4), "y": torch.randn(8, 4)} for _ in range(5)]
AMPTrainer(nn.Linear(4, 4), mixed_precision=True).run(batches, epochs=2)
