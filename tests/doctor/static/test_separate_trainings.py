"""A seed for each of several trainings, and one for each epoch (TL712)."""

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
