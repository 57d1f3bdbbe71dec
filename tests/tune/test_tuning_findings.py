"""What follows from what was measured: factors, their noise, what is proposed, and what is not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, strategies as st

from trueloop.tune.changes import OTHER, ROUNDING, SAME, SpeedChange, candidates, scaled_rate
from trueloop.tune.proposed_config import as_config
from trueloop.tune.race import RaceResult
from trueloop.tune.results import BatchSizeResult, ChangeResult, RaceEntry, TuningResults
from trueloop.tune.text_report import as_json, conclusion, report_lines, table_rows
from trueloop.tune.throughput import Throughput, gain
from trueloop.tune.trial_job import TrainingFacts
from trueloop.tune.trial_processes import DONE, NO_MEMORY, TrialResult

OPTIONS: dict[str, Any] = {
    "batch_size": 64, "accumulate": 1, "lr": 1e-3, "optimizer": "adamw", "precision": "fp32",
    "workers": 0, "threads": None, "epochs": 10, "updates": None, "compile": False,
    "recompute": None,
}  # fmt: skip
FACTS = TrainingFacts(task="own", options=OPTIONS, device="cpu", cores=4, samples=10_000)
BASE = Throughput(rate=1000.0, rounds=[1000.0], peak=2**30, threads=4)


def row(
    name: str, factor: float, results: str = ROUNDING, *, warm: float = 0.0, **options: Any
) -> ChangeResult:
    """A change whose rounds all gave the same factor."""
    measured = Throughput(
        rate=1000 * factor, rounds=[1000 * factor] * 5, ratios=[factor] * 5, warm_seconds=warm
    )
    return ChangeResult(
        change=SpeedChange(name=name, options=options, results=results),
        outcome=TrialResult(status=DONE, value=measured),
        samples_of_run=FACTS.samples_of_run(),
        base_rate=BASE.rate,
    )


def findings(*rows: ChangeResult, **others: Any) -> TuningResults:
    return TuningResults(facts=FACTS, base=BASE, rows=list(rows), **others)


def raced(name: str, loss: float, results: str, **options: Any) -> RaceEntry:
    value = RaceResult(loss=loss, updates=10, samples=640, seconds=5.0)
    outcome = TrialResult(status=DONE, value=value)
    return RaceEntry(name=name, options=options, results=results, outcome=outcome)


@given(st.floats(0.1, 10), st.integers(3, 15), st.integers(0, 2**32 - 1))
def test_a_gain_is_the_median_of_the_ratios_within_its_noise(
    factor: float, rounds: int, seed: int
) -> None:
    draws = np.random.default_rng(seed).normal(0, 0.02, rounds)
    found = gain([factor * math.exp(d) for d in draws])
    assert math.log(found.factor) == pytest.approx(math.log(factor), abs=0.08)
    assert found.noise >= 0.02
    again = gain([1 / (factor * math.exp(d)) for d in draws])  # the other way round
    assert again.factor * found.factor == pytest.approx(1)


def test_the_noise_covers_the_truth_in_nineteen_cases_of_twenty() -> None:
    """Of 2,000 measurements of nothing, few seem a gain: the interval's two halves are 5%."""
    rng = np.random.default_rng(0)
    found = [gain(np.exp(rng.normal(0, 0.1, 15)).tolist()) for _ in range(2000)]
    assert np.mean([one.is_real for one in found]) < 0.06
    assert np.mean([one.is_loss for one in found]) < 0.06


def test_a_gain_below_the_noise_is_not_proposed() -> None:
    noisy = row("precision bf16", 1.0, precision="bf16")
    assert noisy.measured is not None
    noisy.measured.ratios[:] = [0.5, 1.05, 1.06, 1.1, 2.0]
    small = row("threads 2", 1.01, threads=2)
    found = findings(noisy, small, row("workers 2", 0.5, SAME, workers=2))
    assert found.proposal().options == {}
    assert [r.why() for r in found.rows] == [
        "no gain beyond the noise", "no gain beyond the noise", "slower",
    ]  # fmt: skip


def test_the_best_value_of_each_option_is_proposed_and_the_factors_multiply() -> None:
    found = findings(
        row("threads 1", 1.2, threads=1),
        row("threads 2", 1.5, threads=2),
        row("precision bf16", 2.0, precision="bf16"),
    )
    assert found.proposal().options == {"threads": 2, "precision": "bf16"}
    assert found.proposal().results == ROUNDING
    assert found.product() == pytest.approx(3.0)
    found.dropped.append("threads 2")
    assert found.proposal().options == {"threads": 1, "precision": "bf16"}


def test_compiling_has_to_pay_in_the_run() -> None:
    # 100,000 samples at 1,000 a second: 100 s, of which 1.25 times the speed saves 20.
    assert findings(row("compile", 1.25, warm=15, compile=True)).proposal().options
    dear = findings(row("compile", 1.25, warm=25, compile=True))
    assert not dear.proposal().options
    assert "more than the run saves" in dear.rows[0].why()


def test_what_changes_the_training_is_proposed_by_a_race_alone_and_said() -> None:
    rows = row("batch size 256", 3.0, OTHER, batch_size=256), row("threads 2", 1.5, threads=2)
    assert findings(*rows).proposal().options == {"threads": 2}
    same = raced("the same", 0.50, SAME, threads=2)
    close = raced("batch size 256", 0.49, OTHER, threads=2, batch_size=256)
    assert findings(*rows, entrants=[same, close]).proposal().options == {"threads": 2}
    lost = raced("lr 3", math.nan, OTHER, threads=2, lr=3.0)
    better = raced("batch size 256", 0.40, OTHER, threads=2, batch_size=256, lr=2e-3)
    found = findings(*rows, entrants=[same, lost, better])
    proposal = found.proposal()
    assert proposal.options == {"threads": 2, "batch_size": 256, "lr": 2e-3}
    assert proposal.results == OTHER
    assert "0.4, against 0.5" in proposal.why
    assert any("CHANGES what is trained" in line for line in conclusion(found, 1.0))
    text = as_config("own", {"lr": 1e-3, "seed": 3}, found, 1.0)
    assert "trains DIFFERENTLY" in text
    assert "lr: 0.002  # was 0.001" in text
    assert yaml.safe_load(text) == {
        "task": "own", "seed": 3, "threads": 2, "batch_size": 256, "lr": 2e-3,
    }  # fmt: skip


def test_the_fastest_batch_is_the_smallest_near_the_most_throughput() -> None:
    def at(**rates: float) -> int | None:
        points = [
            BatchSizeResult(
                batch_size=int(size[1:]),
                outcome=TrialResult(status=DONE, value=Throughput(rate=rate, rounds=[rate])),
            )
            for size, rate in rates.items()
        ]
        points.append(BatchSizeResult(batch_size=4096, outcome=TrialResult(status=NO_MEMORY)))
        return findings(points=points).fastest_batch()

    assert at(b64=1000, b128=1500, b256=1990, b512=2000) == 256
    assert at(b64=1000, b128=1040) is None  # 4% more is not worth a different training
    assert at(b64=1000) is None
    assert at(b128=1000) is None  # the user's own was not measured


def test_a_failed_trial_stands_in_the_table_with_its_reason() -> None:
    failed = ChangeResult(
        change=SpeedChange(name="compile", options={"compile": True}, results=ROUNDING),
        outcome=TrialResult(status="crashed", reason="ended by SIGSEGV"),
    )
    points = [
        BatchSizeResult(batch_size=64, outcome=TrialResult(status=DONE, value=BASE)),
        BatchSizeResult(batch_size=128, outcome=TrialResult(status=NO_MEMORY)),
    ]
    found = findings(failed, points=points, notes=["workers: no time left"])
    assert table_rows(found)[1][-1] == "crashed: ended by SIGSEGV"
    assert "batch size 128: out of memory" in report_lines(found)
    assert "not measured: workers: no time left" in report_lines(found)
    from pathlib import Path

    content = as_json(found, Path("tuned.yaml"), [])
    assert content["changes"][0]["reason"] == "ended by SIGSEGV"
    assert content["batch_sizes"][1]["status"] == "out of memory"


def test_candidates_suit_the_machine_and_the_data() -> None:
    changes, left_out = candidates(FACTS, BASE)
    assert [c.name for c in changes] == [
        "precision bf16", "threads 1", "compile step", "compile model",
    ]  # fmt: skip
    assert left_out == ["workers: the training data are whole batches, which workers do not load"]
    files = TrainingFacts(
        task="own",
        options=OPTIONS,
        device="cuda",
        cores=2,
        samples=10,
        needs_workers=True,
        has_blocks=True,
    )
    changes, left_out = candidates(files, BASE)
    assert [c.name for c in changes] == [
        "precision bf16", "precision fp16", "workers 1", "workers 2", "compile step",
        "compile model", "recompute 1",
    ]  # fmt: skip
    assert {c.results for c in changes if "workers" in c.options} == {SAME}
    assert not left_out


def test_a_rate_is_scaled_by_the_rule_of_its_optimizer() -> None:
    assert scaled_rate(0.1, 4, "sgd") == pytest.approx(0.4)
    assert scaled_rate(1e-3, 4, "adamw") == pytest.approx(2e-3)


def test_what_there_was_no_time_for_is_not_called_useless() -> None:
    assert findings().how().why == "nothing was found that helps"
    late = findings(notes=["threads 2: no time left (--minutes)"])
    assert "write a larger --minutes" in late.how().why
