"""`trueloop.Doctor`, the sink of `fit`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import trueloop
from trueloop.checkpoint import WriteError
from trueloop.doctor.live import session as sessions
from trueloop.doctor.live.entry import fit_sink
from trueloop.doctor.live.entry.fit_sink import NOWHERE, of_the_user
from trueloop.doctor.model.findings import Finding, Location, Related

OURS = str(Path(trueloop.__file__).with_name("loop") / "loop.py")


@pytest.fixture(autouse=True)
def _one_thread() -> Any:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class Faulty(nn.Module):
    """Its middle layers are in a plain list."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.layers = [nn.Linear(8, 8)]  # this line is to be named
        self.last = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.layers[0](self.first(x)))


def sound() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.ReLU(), nn.Linear(8, 3))


def data(rows: int = 256) -> tuple[Tensor, Tensor]:
    x = torch.randn(rows, 4, generator=torch.Generator().manual_seed(1))
    return x, x[:, :3].argmax(dim=1)


def train(model: nn.Module, sinks: list[Any], *, epochs: int = 3, **options: Any) -> Any:
    step = trueloop.Step(
        model,
        trueloop.optimizers.adam(model, 1e-2),
        trueloop.supervised(nn.CrossEntropyLoss()),
        schedule=trueloop.schedules.cosine(),
        clip_norm=1.0,
    )
    x, y = data()
    feed = trueloop.Feed((x, y), 32, shuffle=True)
    val = trueloop.Feed((x[:50], y[:50]), 50)
    return trueloop.fit(step, feed, val, epochs=epochs, sinks=sinks, progress=False, **options)


def seeded(make: Any) -> nn.Module:
    torch.manual_seed(0)
    model: nn.Module = make()
    return model


def line_of(text: str) -> int:
    lines = Path(__file__).read_text("utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_a_sound_run_has_no_findings_and_torch_is_as_before(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = [nn.Module.__call__, torch.optim.Optimizer.zero_grad, nn.Module.train]
    with trueloop.Doctor() as doctor:
        assert before != [nn.Module.__call__, torch.optim.Optimizer.zero_grad, nn.Module.train]
        train(seeded(sound), [doctor])
    assert before == [nn.Module.__call__, torch.optim.Optimizer.zero_grad, nn.Module.train]
    assert (doctor.findings, doctor.errors) == ([], [])
    assert sessions.running() is None
    assert capsys.readouterr().err == ""


def test_findings_are_said_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = trueloop.Run.create(tmp_path / "run", config={}, environment={})
    with trueloop.Doctor(run) as doctor:
        train(seeded(Faulty), [doctor], run=run)
    (finding,) = doctor.findings
    assert (finding.code, finding.place.path) == ("TL303", __file__)
    assert finding.place.line == line_of("is to be named")
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert said[0].startswith("trueloop: error TL303, ")
    assert said[0].endswith("(trueloop explain TL303)")
    (kept,) = run.findings or []
    assert (kept["code"], kept["line"], kept["seen"]) == ("TL303", finding.place.line, "live")
    assert kept["place"].endswith(f"test_sink.py:{kept['line']}")


def test_it_tells_after_the_epoch_and_once(capsys: pytest.CaptureFixture[str]) -> None:
    seen = []

    def watch(record: Any) -> None:
        if isinstance(record, trueloop.EvalRecord):
            seen.append((record.epoch, len(doctor.findings)))

    with trueloop.Doctor() as doctor:
        train(seeded(Faulty), [doctor, watch])
    assert seen == [(0, 1), (1, 1), (2, 1)]
    assert capsys.readouterr().err.count("\n") == 1


def test_what_is_computed_is_bitwise_the_same(tmp_path: Path) -> None:
    """Weights, scores, and every line of the log but for the times."""

    def outcome(name: str, *, watched: bool) -> tuple[list[Tensor], list[dict[str, Any]]]:
        run = trueloop.Run.create(tmp_path / name, config={}, environment={})
        with trueloop.Doctor(run, show=False) as doctor:
            if not watched:
                doctor.end()
            model = seeded(Faulty)
            train(model, [doctor], run=run, epochs=15)
        lines = [
            {key: value for key, value in line.items() if key not in ("time", "seconds")}
            for line in run.metrics()
        ]
        return [each.detach().clone() for each in model.parameters()], lines

    plain, log = outcome("plain", watched=False)
    watched, watched_log = outcome("watched", watched=True)
    assert all(torch.equal(a, b) for a, b in zip(plain, watched, strict=True))
    assert log == watched_log
    assert len(log) == 15 * 8 + 15


def test_a_loss_that_is_not_finite_is_traced_and_kept_in_the_run(tmp_path: Path) -> None:
    run = trueloop.Run.create(tmp_path / "run", config={}, environment={})
    model = seeded(sound)
    step = trueloop.Step(
        model, trueloop.optimizers.adam(model), trueloop.supervised(nn.CrossEntropyLoss())
    )
    x, y = data(64)
    x[17] = float("nan")
    doctor = trueloop.Doctor(run, show=False)
    with pytest.raises(trueloop.NonFiniteError), doctor:
        trueloop.fit(step, trueloop.Feed((x, y), 16), epochs=1, sinks=[doctor])
    (finding,) = (each for each in doctor.findings if each.code == "TH101")
    assert finding.place.path == __file__
    assert finding.place.line == line_of("epochs=1, sinks=[doctor])")
    assert "contains NaN" in finding.message
    kept = {each["code"]: each["severity"] for each in run.findings or []}
    assert kept == {"TL708": "error", "TH101": "advice"}  # the cause, and what came of it
    assert len(list(run.path.glob("trueloop-nan-*"))) == 1


# ---------------------------------------------------------------------- how long it watches


def updates_watched(epochs: int, **options: Any) -> int:
    with trueloop.Doctor(show=False, **options) as doctor:
        assert doctor._session is not None
        watcher = doctor._session.watcher
        train(seeded(sound), [doctor], epochs=epochs)
    assert watcher is not None
    return watcher.hub.updates


def test_all_of_a_run_of_slow_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_sink, "FIRST", 100)
    monkeypatch.setattr(fit_sink, "_SLOW", 0.0)
    assert updates_watched(20) == 160


def test_the_first_of_fast_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_sink, "FIRST", 100)
    monkeypatch.setattr(fit_sink, "_SLOW", 10.0)
    assert updates_watched(20) == 100


def test_as_many_as_are_asked_for() -> None:
    assert updates_watched(10, first=60) == 60


# ---------------------------------------------------------------------- options


def test_rules_are_chosen() -> None:
    with trueloop.Doctor(ignore=["TL303"], show=False) as doctor:
        train(seeded(Faulty), [doctor])
    assert doctor.findings == []


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"select": "TL3"}, "select must be a list"),
        ({"select": ["TL802"]}, "use trueloop check"),
        ({"select": ["TL714"]}, "is found only in the data of trueloop train: remove it"),
        ({"first": 0}, "first=0 is not an integer of at least 1"),
    ],
    ids=["text", "source", "data", "none"],
)
def test_options_that_cannot_be(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(trueloop.ConfigError, match=complaint):
        trueloop.Doctor(**options)


def test_inside_of_a_program_that_is_watched(capsys: pytest.CaptureFixture[str]) -> None:
    with trueloop.watch(show=False) as outer:
        with trueloop.Doctor(show=False) as doctor:
            train(seeded(Faulty), [doctor])
        assert sessions.running() is not None
    assert [each.code for each in doctor.findings] == ["TL303"]
    assert "TL303" in [each.code for each in outer.findings]


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = trueloop.Run.create(tmp_path / "run", config={}, environment={})
    kept: list[Any] = []
    full = [True, True, False]

    def add(found: Any) -> None:
        if full.pop(0):
            raise WriteError("cannot write findings.json (no space): free some")
        kept.extend(found)

    monkeypatch.setattr(run, "add_findings", add)
    with (
        pytest.warns(RuntimeWarning, match=r"cannot write findings\.json"),
        trueloop.Doctor(run, show=False, on_error="continue") as doctor,
    ):
        train(seeded(Faulty), [doctor])
    assert [each["code"] for each in kept] == ["TL303"]
    full[:] = [True] * 9
    with (
        pytest.raises(WriteError),
        trueloop.Doctor(run, show=False) as doctor,
    ):
        train(seeded(Faulty), [doctor])


# ---------------------------------------------------------------------- whose code it is


def finding(code: str, path: str, *related: str) -> Finding:
    where = tuple(Related(Location(each, 7), "here") for each in related)
    return Finding(code, "name", "error", Location(path, 3), "message", related=where)


def test_findings_in_the_users_code_are_told_as_they_are() -> None:
    own = finding("TL101", __file__, OURS)
    assert of_the_user(own) is own


def test_our_own_loop_is_no_news() -> None:
    for code in ("TL101", "TL203", "TL605", "TL709", "TL801", "TL901", "TH104", "TS101"):
        assert of_the_user(finding(code, OURS)) is None


def test_nor_is_it_where_the_user_calls_it() -> None:
    line = line_of("return trueloop.fit(step, feed")
    text = Path(__file__).read_text("utf-8").splitlines()[line - 1]
    place = Location(__file__, line, text.index("trueloop") + 1, line, len(text) + 1)
    assert of_the_user(replace(finding("TL203", __file__), place=place)) is None
    told = of_the_user(replace(finding("TL707", __file__), place=place))
    assert told is not None
    assert told.place == place


def test_the_users_line_stands_for_ours() -> None:
    told = of_the_user(finding("TL203", OURS, OURS, __file__))
    assert told is not None
    assert told.place == Location(__file__, 7)


def test_what_is_about_the_model_or_the_data_has_no_line() -> None:
    for code in ("TL304", "TL404", "TL707", "TL708", "TH101", "TH105"):
        told = of_the_user(finding(code, OURS))
        assert told is not None
        assert told.place == NOWHERE
