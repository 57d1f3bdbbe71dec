"""The trainable parameters are picked before the encoder is released, in a trainer with phases."""

import os

import torch
import torch.nn as nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.LSTM(5, 8, batch_first=True)
        self.tags = nn.Linear(8, 4)

    def forward(self, words):
        return self.tags(self.encoder(words)[0])


class FineTuner:
    def __init__(self, path):
        self.net = Tagger()
        self.net.encoder.load_state_dict(torch.load(path))
        self.net.encoder.requires_grad_(False)
        wanted = filter(lambda p: p.requires_grad, self.net.parameters())
        self.opt = torch.optim.SGD(wanted, lr=0.1, momentum=0.9)  # <- TL302

    def phase(self, batches, freeze):
        self.net.encoder.requires_grad_(not freeze)
        for words, tags in batches:
            scores = self.net(words)
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), tags.flatten())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return loss.item()


def main():
    torch.manual_seed(1)
    source = nn.LSTM(5, 8, batch_first=True)
    with torch.no_grad():
        for p in source.parameters():
            p.mul_(torch.randn_like(p))
    torch.save(source.state_dict(), "encoder.pt")
    batches = [(torch.randn(4, 7, 5), torch.randint(0, 4, (4, 7))) for _ in range(8)]
    tuner = FineTuner("encoder.pt")
    print(tuner.phase(batches, freeze=True))
    print(tuner.phase(batches, freeze=False))
    os.remove("encoder.pt")


main()
