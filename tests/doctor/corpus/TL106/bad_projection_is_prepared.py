import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Training:
    def __init__(self):
        self.accelerator = Accelerator(cpu=True)
        self.body, self.head = nn.Linear(9, 5), nn.Linear(5, 3)
        self.optimizer = torch.optim.AdamW(self.body.parameters(), lr=1e-3)
        self.head_optimizer = torch.optim.AdamW(self.head.parameters(), lr=1e-2)  # <- TL106
        self.head_schedule = torch.optim.lr_scheduler.ConstantLR(self.head_optimizer)
        parts = (self.body, self.head, self.optimizer, self.head_optimizer)
        self.body, self.head, self.optimizer, self.head_optimizer = self.accelerator.prepare(*parts)

    def run(self, batches):
        for x, y in batches:
            loss = nn.functional.cross_entropy(self.head(self.body(x)), y)
            self.accelerator.backward(loss)
            self.optimizer.step()
            self.optimizer.zero_grad()
            print(loss.item(), self.head_schedule.get_last_lr())


torch.manual_seed(0)
data = TensorDataset(torch.randn(90, 9), torch.randint(0, 3, (90,)))
Training().run(DataLoader(data, batch_size=10, shuffle=True))
