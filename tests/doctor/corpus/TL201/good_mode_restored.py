"""A context manager turns eval mode on and puts the old mode back."""

import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


@contextlib.contextmanager
def evaluating(net):
    was_training = net.training
    net.eval()
    try:
        yield net
    finally:
        net.train(was_training)


def perplexity(model, batches):
    total, count = 0.0, 0
    with evaluating(model), torch.no_grad():
        for tokens, targets in batches:
            logits = model(tokens)
            total += F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum").item()
            count += targets.numel()
    return float(torch.tensor(total / count).exp())


class Bigram(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.table = nn.Embedding(vocab, 32)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(32, vocab)

    def forward(self, tokens):
        return self.head(self.drop(self.table(tokens)))


def main():
    torch.manual_seed(0)
    text = torch.randint(0, 30, (96, 17))
    dataset = TensorDataset(text[:, :-1], text[:, 1:])
    train = DataLoader(torch.utils.data.Subset(dataset, range(64)), batch_size=16, shuffle=True)
    held_out = DataLoader(torch.utils.data.Subset(dataset, range(64, 96)), batch_size=16)
    model = Bigram(30)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model.train()
    for epoch in range(3):
        for tokens, targets in train:
            loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: perplexity {perplexity(model, held_out):.2f}")


if __name__ == "__main__":
    main()
