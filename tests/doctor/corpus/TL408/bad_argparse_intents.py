"""Intent classification: the module's softmax has the wrong dimension."""

import argparse

import torch
import torch.nn as nn
import torch.utils.data as tud


class Utterances(tud.Dataset):
    def __init__(self, n=180, vocab=30, length=5):
        generator = torch.Generator().manual_seed(11)
        self.tokens = torch.randint(0, vocab, (n, length), generator=generator)
        self.labels = self.tokens[:, 0] % 3

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.tokens[index], self.labels[index]


class IntentClassifier(nn.Module):
    def __init__(self, vocab=30, dim=12, classes=3):
        super().__init__()
        self.embedding = nn.EmbeddingBag(vocab, dim)
        self.hidden = nn.Linear(dim, 24)
        self.output = nn.Linear(24, classes)
        self.softmax = nn.LogSoftmax(dim=0)

    def forward(self, tokens):
        hidden = torch.relu(self.hidden(self.embedding(tokens)))
        return self.softmax(self.output(hidden))  # <- TL408


def run(args):
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    model = IntentClassifier()
    criterion = nn.NLLLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    loader = tud.DataLoader(Utterances(), batch_size=args.batch_size, shuffle=True)
    for epoch in range(args.epochs):
        model.train()
        for tokens, labels in loader:
            model.zero_grad()
            loss = criterion(model(tokens), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=30)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--seed", type=int, default=0)
    run(parser.parse_args())
