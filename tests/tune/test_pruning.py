"""A search ends trials that promise little, and keeps the score of one that has come to its end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trueloop.tune.search import EvaluationLog, StudyRunner
from trueloop.tune.space import Choices
from trueloop.tune.study import StudyConfig, StudyFolder, _pruner, import_optuna
from trueloop.tune.trial_processes import DONE, TrialResult


@pytest.mark.parametrize("pruner", ["hyperband", "median", "none"])
def test_a_pruner_ends_what_promises_little(pruner: str) -> None:
    """Eight good trials of nine evaluations, then a bad one, which only a pruner ends."""
    optuna = import_optuna()
    study = optuna.create_study(study_name="s", pruner=_pruner(optuna, pruner, 9))
    ended_at = []
    for k in range(12):
        trial, ended = study.ask(), 9
        for step in range(1, 10):
            trial.report((100.0 if k >= 8 else 1.0 + k / 100) / step, step)
            if trial.should_prune():
                ended = step
                break
        study.tell(trial, 0.0 if ended == 9 else None,
                   state=None if ended == 9 else optuna.trial.TrialState.PRUNED)  # fmt: skip
        ended_at.append(ended)
    bad = ended_at[8:]
    assert (min(bad) < 9) == (pruner != "none")


class Ended:
    """Trials that have ended when they are looked at for the second time."""

    def __init__(self) -> None:
        self.looks = 0

    def poll(self, seconds: float) -> TrialResult | None:
        self.looks += 1
        return None if self.looks == 1 else TrialResult(status=DONE, value=0)

    def stop(self, number: int) -> None:
        """It has ended by then."""


@pytest.mark.parametrize(
    ("options", "params", "is_pruned"),
    [
        ({}, {"epochs": 3}, False),  # the third evaluation is the last one
        ({}, {"epochs": 4}, True),
        ({"eval_every": "50 updates"}, {"epochs": 3}, True),  # nobody knows how many there are
    ],
)
def test_a_trial_at_its_last_evaluation_is_not_pruned(
    tmp_path: Path, options: dict[str, Any], params: dict[str, Any], is_pruned: bool
) -> None:
    optuna = import_optuna()
    space = {"epochs": Choices(values=(3, 4))}
    plan = StudyConfig(
        task="t", options=options, space=space, monitor="val_loss", mode="min", epochs=10
    )
    pruner = optuna.pruners.ThresholdPruner(upper=0.0, n_warmup_steps=3)  # all, from the third on
    study = optuna.create_study(pruner=pruner)
    study.enqueue_trial(params)
    processes: Any = Ended()
    search = StudyRunner(
        StudyFolder(tmp_path, plan), study, processes, say=print, after_trial=lambda: None
    )
    log = tmp_path / "metrics.jsonl"
    log.write_text("".join(json.dumps({"kind": "eval", "val_loss": 1.0}) + "\n" for _ in range(3)))
    outcome, pruned = search._watched(study.ask(search._space), EvaluationLog(log, "val_loss"))
    assert pruned == is_pruned
    assert outcome.is_done
