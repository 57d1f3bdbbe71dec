"""A trainer whose evaluation turns eval mode on when the loop is over."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Sequences(Dataset):
    def __init__(self, n, seed):
        generator = torch.Generator().manual_seed(seed)
        self.tokens = torch.randint(1, 40, (n, 10), generator=generator)

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        tokens = self.tokens[index]
        return {"input_ids": tokens, "labels": (tokens.sum() % 2).long()}


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(40, 16)
        self.rnn = nn.GRU(16, 24, batch_first=True)
        self.classifier = nn.Sequential(nn.Dropout(0.3), nn.Linear(24, 2))

    def forward(self, input_ids):
        _, hidden = self.rnn(self.embed(input_ids))
        return self.classifier(hidden[-1])


class Trainer:
    def __init__(self, net, loaders, lr=2e-3):
        self.net, self.loaders = net, loaders
        self.opt = torch.optim.Adam(net.parameters(), lr=lr)
        self.ce = nn.CrossEntropyLoss()

    def train_epoch(self):
        self.net.train()
        for batch in self.loaders["train"]:
            self.opt.zero_grad()
            loss = self.ce(self.net(batch["input_ids"]), batch["labels"])
            loss.backward()
            self.opt.step()

    @torch.no_grad()
    def evaluate(self):
        correct = 0
        for batch in self.loaders["dev"]:
            logits = self.net(batch["input_ids"])  # <- TL202
            correct += logits.argmax(-1).eq(batch["labels"]).sum().item()
        self.net.eval()
        return correct / len(self.loaders["dev"].dataset)

    def fit(self, epochs):
        for epoch in range(epochs):
            self.train_epoch()
            print(f"epoch {epoch}: dev accuracy {self.evaluate():.3f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    loaders = {
        "train": DataLoader(Sequences(96, seed=0), batch_size=16, shuffle=True),
        "dev": DataLoader(Sequences(32, seed=1), batch_size=16),
    }
    Trainer(Tagger(), loaders).fit(2)
