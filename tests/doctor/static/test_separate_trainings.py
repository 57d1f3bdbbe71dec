"""A seed for each of several trainings, and for each epoch (TL712); the best of several trainings
(TL805)."""

from __future__ import annotations

from trueloop.doctor.static import check_text

TRAINER = """
import torch
from torch import nn


class Trainer:
    def __init__(self, model, epochs):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        self.epochs = epochs

    def train_epoch(self, loader):
        for inputs, targets in loader:
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.model(inputs), targets).backward()
            self.optimizer.step()

    def fit(self, loader):
        for epoch in range(self.epochs):
            self.train_epoch(loader)

    def fit_all(self, tasks, state):
        for task, loader in tasks.items():
            self.model.load_state_dict(state)
            torch.manual_seed(0)
            {body}
"""


def codes(body: str) -> list[str]:
    found = check_text(TRAINER.format(body=body), "train.py").findings
    return [each.code for each in found if each.severity != "advice"]


def test_a_seed_for_the_training_of_each_task_is_right() -> None:
    assert codes("self.fit(loader)") == []


def test_a_seed_for_each_epoch_is_reported() -> None:
    assert codes("self.train_epoch(loader)") == ["TL712"]


def test_a_seed_for_each_epoch_of_several_parts_is_reported() -> None:
    assert codes("[self.train_epoch(part) for part in loader]") == ["TL712"]


REPEATED = """
import argparse
import torch
from elsewhere import build

parser = argparse.ArgumentParser()
parser.add_argument("--mode", default="train")
parser.add_argument("--repeats", type=int)
args = parser.parse_args()


class Best:
    def __init__(self):
        self.score = self.weights = None

    def look(self, loss, model):
        if self.score is None or loss < self.score:
            self.score, self.weights = loss, model.state_dict()


if args.mode == "train":
    for loader in torch.load("folds.pt"):
        best = Best()
        {before}
        for repeat in range(args.repeats):
            {within}
            optimizer = torch.optim.Adam(model.parameters())
            for epoch in range(20):
                for inputs, targets in loader:
                    optimizer.zero_grad()
                    loss = torch.nn.functional.mse_loss(model(inputs), targets)
                    loss.backward()
                    optimizer.step()
            best.look(loss.item(), model)
        model.load_state_dict(best.weights)
        torch.save(model.state_dict(), "best.pt")
"""


def found(before: str, within: str) -> list[str]:
    text = REPEATED.format(before=before, within=within)
    return [each.code for each in check_text(text, "train.py").findings if each.code == "TL805"]


def test_the_best_of_several_trainings_with_a_model_each() -> None:
    assert found("pass", "model = build(args.mode)") == []


def test_the_best_of_several_trainings_of_one_model() -> None:
    assert found("model = build(args.mode)", "pass") == ["TL805"]
