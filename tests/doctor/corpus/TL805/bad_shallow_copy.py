"""Character counts of a digit's strokes: `copy.copy` copies the dictionary, not the tensors in it."""

import copy

import torch
import torch.nn.functional as F


class Reader(torch.nn.Module):
    def __init__(self, letters=12, width=16):
        super().__init__()
        self.table = torch.nn.Embedding(letters, width)
        self.out = torch.nn.Linear(width, 2)

    def forward(self, words):
        return self.out(self.table(words).mean(dim=1))


def evaluate(reader, words, kinds):
    with torch.no_grad():
        return (reader(words).argmax(dim=1) == kinds).float().mean().item()


def main():
    torch.manual_seed(5)
    words = torch.randint(0, 12, (160, 6))
    kinds = (words.sum(dim=1) > 33).long()
    reader = Reader()
    sgd = torch.optim.SGD(reader.parameters(), lr=0.5)
    record = {"score": -1.0, "weights": None}
    for epoch in range(12):
        for rows in torch.randperm(128).split(32):
            sgd.zero_grad()
            F.cross_entropy(reader(words[rows]), kinds[rows]).backward()
            sgd.step()
        score = evaluate(reader, words[128:], kinds[128:])
        if score > record["score"]:
            weights = reader.state_dict()  # <- TL805
            record["score"], record["weights"] = score, copy.copy(weights)
    reader.load_state_dict(record["weights"])
    print(f"best {record['score']:.3f}", evaluate(reader, words[128:], kinds[128:]))


main()
