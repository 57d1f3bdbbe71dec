"""Micro-batches are collected until an option's number is reached; validation runs every few of
those updates, in a method of the trainer, over an iterable of the user's."""

import argparse
import subprocess
from itertools import cycle

import torch
from torch import nn


class Shards:
    def __init__(self, shards, forever):
        self.shards = shards
        self.forever = forever

    def __iter__(self):
        for shard in cycle(self.shards) if self.forever else self.shards:
            for batch in shard:
                yield batch


class Translator:
    def __init__(self, model, optimizer, accum_count):
        self.model, self.optimizer, self.accum_count = model, optimizer, accum_count
        self.loss = nn.CrossEntropyLoss()

    def train(self, train_iter, valid_iter, steps):
        step, accum, batches = 1, 0, []
        while step <= steps:
            for batch in train_iter:
                batches.append(batch)
                accum += 1
                if accum == self.accum_count:
                    self._update(batches)
                    accum, batches = 0, []
                    if step % 20 == 0:
                        print(step, self.validate(valid_iter))
                    step += 1
                    if step > steps:
                        break

    def validate(self, valid_iter):
        self.model.eval()
        total = 0.0
        for inputs, targets in valid_iter:
            outputs = self.model(inputs)  # <- TL203
            total += self.loss(outputs, targets).item()
        self.model.train()
        return total

    def _update(self, batches):
        self.optimizer.zero_grad()
        for inputs, targets in batches:
            (self.loss(self.model(inputs), targets) / len(batches)).backward()
        self.optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--accum_count", type=int, default=1)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args([])
    if options.nodes > 1:
        subprocess.run(["ssh", "node1", "python", __file__], check=True)
    elif options.device == "gpu":
        run(options, "cuda")
    else:
        run(options, "cpu")


def run(options, device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    shards = [
        [(torch.randn(8, 6), torch.randint(3, (8,))) for _ in range(10)] for _ in range(3)
    ]
    trainer = Translator(model, optimizer, options.accum_count)
    trainer.train(Shards(shards[:2], True), Shards(shards[2:], False), options.steps)


if __name__ == "__main__":
    main()
