"""Each optimizer whose name the file has is restored: it has them all."""

import json
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Game:
    def __init__(self):
        self.actor, self.judge = nn.Linear(4, 2), nn.Linear(2, 1)
        self.trainers = {"actor": torch.optim.Adam(self.actor.parameters(), lr=1e-3)}
        self.trainers["judge"] = torch.optim.Adam(self.judge.parameters(), lr=1e-3)
        self.rounds = 0

    def save(self, path):
        states = {name: each.state_dict() for name, each in self.trainers.items()}
        parts = {"actor": self.actor.state_dict(), "judge": self.judge.state_dict()}
        torch.save({**parts, "trainers": states, "rounds": self.rounds}, path)

    def load(self, path):
        found = torch.load(path, weights_only=True)
        self.actor.load_state_dict(found["actor"])
        self.judge.load_state_dict(found["judge"])
        for name, each in self.trainers.items():
            if name in found.get("trainers", {}):
                each.load_state_dict(found["trainers"][name])
        self.rounds = found.get("rounds", 0)

    def play(self, moves):
        self.rounds += 1
        loss = self.judge(self.actor(moves)).pow(2).mean()
        for each in self.trainers.values():
            each.zero_grad()
        loss.backward()
        self.trainers["actor"].step()
        self.trainers["judge"].step()


def main(text, path):
    settings = json.loads(text)
    game = Game()
    if settings["start"] != "":
        game.load(settings["start"])
    for (moves,) in DataLoader(TensorDataset(torch.randn(40, 4)), 10, shuffle=True):
        game.play(moves)
    game.save(path)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "game.pt")
        main('{"start": ""}', file)
        main(json.dumps({"start": file}), file)
