import torch
from torch import nn


class Trainer:
    def __init__(self, model, lr, max_norm=None):
        self.model, self.max_norm = model, max_norm
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.grad_scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        self.loss_fn = nn.SmoothL1Loss()

    def training_step(self, batch):
        with torch.autocast("cpu", dtype=torch.float16):
            prediction = self.model(batch["inputs"])
        return self.loss_fn(prediction.float(), batch["targets"])

    def fit(self, batches):
        for batch in batches:
            self.optimizer.zero_grad()
            loss = self.training_step(batch)
            self.grad_scaler.scale(loss).backward()
            self.grad_scaler.unscale_(self.optimizer)
            if self.max_norm is not None:
                nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
            self.optimizer.step()  # <- TL503
            self.grad_scaler.update()
        return loss.item()


torch.manual_seed(0)
batches = [{"inputs": torch.randn(8, 5), "targets": torch.randn(8, 1)} for _ in range(9)]
print(Trainer(nn.Linear(5, 1), lr=1e-3, max_norm=1.0).fit(batches))
