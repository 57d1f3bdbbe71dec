"""Each network whose name the file has is restored, and no optimizer."""

import json
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Game:
    def __init__(self):
        self.net = nn.Linear(4, 2)
        self.optimizers = {"net": torch.optim.Adam(self.net.parameters(), lr=1e-3)}
        self.rounds = 0

    def save(self, path):
        torch.save({"nets": {"net": self.net.state_dict()}, "rounds": self.rounds}, path)

    def load(self, path):
        found = torch.load(path, weights_only=True)
        for name, each in {"net": self.net}.items():
            if name in found["nets"]:
                each.load_state_dict(found["nets"][name])  # <- TL801
        self.rounds = found["rounds"]

    def play(self, moves):
        self.optimizers["net"].zero_grad()
        self.net(moves).pow(2).mean().backward()
        self.optimizers["net"].step()


def main(text, path):
    settings = json.loads(text)
    game = Game()
    if settings["start"] != "":
        game.load(settings["start"])
    while game.rounds < settings["until"]:
        for (moves,) in DataLoader(TensorDataset(torch.randn(40, 4)), 10, shuffle=True):
            game.play(moves)
            game.rounds += 1
    game.save(path)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "game.pt")
        main('{"start": "", "until": 4}', file)
        main(json.dumps({"start": file, "until": 8}), file)
