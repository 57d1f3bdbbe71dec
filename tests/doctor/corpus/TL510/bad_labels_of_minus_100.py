"""Answers are learnt, questions are not: their labels are -100. A trainer that accumulates."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset


class Dialogues(Dataset):
    def __init__(self, count):
        self.items = []
        for asks, answers in torch.randint(2, 16, (count, 2)).tolist():
            tokens = torch.randint(1, 30, (asks + answers,))
            labels = tokens.clone()
            labels[:asks] = -100
            self.items.append((tokens, labels))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def pad(samples):
    tokens = pad_sequence([each for each, _ in samples], batch_first=True)
    labels = pad_sequence([each for _, each in samples], batch_first=True, padding_value=-100)
    return {"input_ids": tokens, "labels": labels}


class Trainer:
    def __init__(self, model, loader, accumulation_steps=2):
        self.model, self.loader = model, loader
        self.accumulation_steps = accumulation_steps
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def compute_loss(self, batch):
        logits = self.model(batch["input_ids"])
        labels = batch["labels"][:, 1:].reshape(-1)
        logits = logits[:, :-1].reshape(-1, 30)
        return F.cross_entropy(logits, labels, ignore_index=-100)  # <- TL510

    def train_epoch(self):
        self.model.train()
        self.optimizer.zero_grad()
        for step, batch in enumerate(self.loader):
            loss = self.compute_loss(batch) / self.accumulation_steps
            loss.backward()
            if (step + 1) % self.accumulation_steps == 0:
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                self.optimizer.zero_grad()


if __name__ == "__main__":
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(30, 8), nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 30))
    loader = DataLoader(Dialogues(64), batch_size=4, shuffle=True, collate_fn=pad)
    trainer = Trainer(model, loader)
    for _ in range(2):
        trainer.train_epoch()
