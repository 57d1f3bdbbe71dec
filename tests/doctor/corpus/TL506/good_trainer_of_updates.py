"""A trainer with windows, a last short one, and a schedule over its updates."""

from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


@dataclass
class TrainingArguments:
    output_dir: str = "out"
    num_train_epochs: int = 3
    per_device_train_batch_size: int = 8
    gradient_accumulation_steps: int = 2
    max_grad_norm: float = 1.0
    learning_rate: float = 1e-3
    fp16: bool = False
    bf16: bool = None
    save_steps: int = 10


class Trainer:
    def __init__(self, model, args, train, eval_):
        self.model, self.args, self.train_dataset, self.eval_dataset = model, args, train, eval_

    def create_optimizer(self):
        decay = [p for n, p in self.model.named_parameters() if p.ndim > 1]
        no = [p for n, p in self.model.named_parameters() if p.ndim <= 1]
        self.optimizer = torch.optim.AdamW(
            [{"params": decay, "weight_decay": 0.01}, {"params": no, "weight_decay": 0.0}],
            lr=self.args.learning_rate,
        )

    def compute_loss(self, model, inputs):
        return F.cross_entropy(model(inputs["x"]), inputs["labels"])

    def train(self):
        a = self.args
        loader = DataLoader(self.train_dataset, a.per_device_train_batch_size, shuffle=True)
        self.create_optimizer()
        updates = (
            (len(loader) + a.gradient_accumulation_steps - 1)
            // a.gradient_accumulation_steps
            * a.num_train_epochs
        )
        self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda s: max(0.0, 1 - s / updates)
        )
        self.state = {"step": 0, "loss": []}
        for epoch in range(a.num_train_epochs):
            self.model.train()
            for step, inputs in enumerate(loader):
                with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bool(a.bf16)):
                    loss = self.compute_loss(self.model, inputs) / a.gradient_accumulation_steps
                loss.backward()
                self.state["loss"].append(loss.item())
                if (step + 1) % a.gradient_accumulation_steps == 0 or step + 1 == len(loader):
                    nn.utils.clip_grad_norm_(self.model.parameters(), a.max_grad_norm)
                    self.optimizer.step()
                    self.lr_scheduler.step()
                    self.optimizer.zero_grad()
                    self.state["step"] += 1
            self.evaluate()

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        preds, labels = [], []
        for inputs in DataLoader(self.eval_dataset, 16):
            preds.append(self.model(inputs["x"]).argmax(-1))
            labels.append(inputs["labels"])
        return (torch.cat(preds) == torch.cat(labels)).float().mean().item()


class DS(Dataset):
    def __init__(self, n):
        self.x = torch.randn(n, 6)
        self.y = (self.x.sum(1) > 0).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"x": self.x[i], "labels": self.y[i]}


Trainer(
    nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 2)),
    TrainingArguments(bf16=True),
    DS(96),
    DS(32),
).train()
