import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    number = lambda self, loss: loss.item()

    def __init__(self, args, model):
        self.args = args
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=256.0) if args.fp16 else None

    def step(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.float16, enabled=self.args.fp16):
            loss = F.mse_loss(self.model(x).float(), y)
        if self.args.fp16:
            self.scaler.scale(loss).backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.args.clip)  # <- TL501
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.args.clip)
            self.optimizer.step()
        return self.number(loss)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--no_fp16", dest="fp16", action="store_false")
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--clip", type=float, default=1.0)
    args = parser.parse_args()
    torch.manual_seed(0)
    trainer = Trainer(args, nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Linear(12, 1)))
    for x, y in DataLoader(TensorDataset(torch.randn(64, 6), torch.randn(64, 1)), batch_size=16, shuffle=True):
        print(trainer.step(x, y))
