import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Runner:
    def __init__(self, model, accumulate):
        self.model, self.accumulate = model, accumulate
        self.optimizer = torch.optim.AdamW(model.parameters())
        self.scaler = torch.amp.GradScaler("cpu", init_scale=32.0)

    def apply(self):
        old_scale = self.scaler.get_scale()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        return self.scaler.get_scale() >= old_scale

    def epoch(self, loader):
        updates = 0
        for i, (x, y) in enumerate(loader):
            with torch.autocast("cpu", dtype=torch.float16):
                loss = nn.functional.cross_entropy(self.model(x), y) / self.accumulate
            self.scaler.scale(loss).backward()
            if (i + 1) % self.accumulate == 0 or (i + 1) == len(loader):
                updates += self.apply()
        return updates


torch.manual_seed(0)
ds = TensorDataset(torch.randn(50, 5), torch.randint(0, 3, (50,)))
print(Runner(nn.Linear(5, 3), 2).epoch(DataLoader(ds, batch_size=10, shuffle=True)))
