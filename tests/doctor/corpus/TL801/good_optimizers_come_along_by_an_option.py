"""Whether the optimizers go on as well is the user's choice, for each resume."""

import json
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regression:
    def __init__(self):
        self.network = nn.Linear(4, 1)
        self.optimizers = {"all": torch.optim.AdamW(self.network.parameters(), lr=1e-3)}
        self.updates = 0

    def read(self, path, keep):
        state = torch.load(path, weights_only=True)
        self.network.load_state_dict(state["network"])
        if keep["notes"]:
            state["notes"].append("resumed")
        if keep["seed"]:
            torch.manual_seed(state["seed"])
        if keep["mode"]:
            self.network.train(state["mode"])
        if keep["scale"]:
            state["notes"].append(self.network.weight.norm().item())
        if keep["best"]:
            state["notes"].append(state["best"])
        if keep["moments"]:
            for key, part in self.optimizers.items():
                part.load_state_dict(state["optimizers"][key])
        self.updates = state["updates"]

    def write(self, path):
        moments = {key: part.state_dict() for key, part in self.optimizers.items()}
        state = {"network": self.network.state_dict(), "optimizers": moments, "notes": []}
        torch.save({**state, "updates": self.updates, "seed": 0, "mode": True, "best": 0}, path)

    def learn(self, rows, values):
        self.updates += 1
        self.optimizers["all"].zero_grad()
        nn.functional.mse_loss(self.network(rows), values).backward()
        self.optimizers["all"].step()


def main(text, path):
    settings = json.loads(text)
    task = Regression()
    if settings["start"] != "":
        task.read(settings["start"], settings["keep"])
    rows = TensorDataset(torch.randn(40, 4), torch.randn(40, 1))
    for inputs, values in DataLoader(rows, batch_size=10, shuffle=True):
        task.learn(inputs, values)
    task.write(path)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "task.pt")
        main('{"start": ""}', file)
        words = ("notes", "seed", "mode", "scale", "best", "moments")
        keep = dict.fromkeys(words, True)
        main(json.dumps({"start": file, "keep": keep}), file)
