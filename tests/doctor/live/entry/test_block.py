"""`with trueloop.watch():` and `%load_ext trueloop`."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest
import torch
from torch import nn

import trueloop
from trueloop.doctor.live.session import running


@pytest.fixture
def parts() -> tuple[nn.Module, torch.optim.Optimizer]:
    model = nn.Linear(4, 1)
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def faulty(parts: tuple[nn.Module, torch.optim.Optimizer], updates: int = 6) -> None:
    model, optimizer = parts
    for _ in range(updates):
        loss = model(torch.randn(8, 4)).square().mean()
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()


def patched() -> list[Any]:
    optimizer = torch.optim.Optimizer
    return [nn.Module.__call__, optimizer.zero_grad, torch.Tensor.backward, nn.Module.train]


def test_a_block_is_watched_and_torch_is_as_before(
    parts: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    before = patched()
    with trueloop.watch() as watched:
        assert patched() != before
        faulty(parts)
    assert patched() == before
    assert running() is None
    (finding,) = watched.findings
    assert (finding.code, finding.place.path) == ("TL101", __file__)
    assert (watched.updates, watched.errors) == (6, [])
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.endswith("\ntrueloop: watched 6 updates of 1 optimizer; 1 error\n")


@pytest.mark.parametrize(
    ("arguments", "codes"),
    [({"select": ["TL2"]}, []), ({"ignore": ["TL101"]}, []), ({"select": ["TL1"]}, ["TL101"])],
    ids=["others", "ignored", "selected"],
)
def test_rules_are_chosen(
    arguments: dict[str, Any], codes: list[str], parts: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with trueloop.watch(**arguments, show=False) as watched:
        faulty(parts)
    assert [finding.code for finding in watched.findings] == codes
    assert capsys.readouterr().err == ""


def test_the_first_updates_alone(parts: Any) -> None:
    before = patched()
    with trueloop.watch(first=4, show=False) as watched:
        faulty(parts, 9)
        assert patched() == before
    assert watched.updates == 4
    assert [finding.code for finding in watched.findings] == ["TL101"]


def test_what_the_block_raises_goes_on(parts: Any) -> None:
    watched = trueloop.watch(show=False)
    with pytest.raises(IndexError), watched:  # noqa: PT012
        faulty(parts)
        [].pop()
    assert [finding.code for finding in watched.findings] == ["TL101"]


def test_a_block_in_a_block_leaves_it_to_the_outer_one(
    parts: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with trueloop.watch(show=False) as outer:
        with trueloop.watch() as first:
            faulty(parts)
        with trueloop.watch() as second:
            pass
    assert capsys.readouterr().err == ""
    assert [len(each.findings) for each in (outer, first, second)] == [1, 1, 0]
    assert [each.updates for each in (outer, first, second)] == [6, 6, 0]


def test_a_forked_child_says_nothing(parts: Any, capfd: pytest.CaptureFixture[str]) -> None:
    before = patched()
    with trueloop.watch(show=False):
        child = os.fork()
        if not child:
            os._exit(0 if patched() == before and running() is None else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"first": 0}, "first=0 is not an integer of at least 1: write e.g. first=500"),
        ({"select": "TL1"}, r'select must be a list of codes: write select=\["TL1"\]'),
        ({"select": ["TL205"]}, "select: TL205 is found only in source"),
        ({"ignore": ["TL9999"]}, "ignore: unknown rule 'TL9999'"),
    ],
    ids=["first", "text", "source", "unknown"],
)
def test_a_mistake_is_told_at_once(arguments: dict[str, Any], complaint: str) -> None:
    with pytest.raises(trueloop.ConfigError, match=complaint):
        trueloop.watch(**arguments)


def test_each_block_has_its_own(parts: Any) -> None:
    watching = trueloop.watch(show=False)
    with watching:
        pass
    with pytest.raises(trueloop.ConfigError, match="is watched already"), watching:
        pass


def test_cells_are_watched(capsys: pytest.CaptureFixture[str]) -> None:
    shells = pytest.importorskip("IPython.core.interactiveshell")
    shell = shells.InteractiveShell.instance()
    shell.run_cell("%load_ext trueloop")
    shell.run_cell(
        "import torch\nmodel = torch.nn.Linear(4, 1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)",
        store_history=True,
    )
    cell = (
        "for _ in range(6):\n    loss = model(torch.randn(8, 4)).square().mean()\n"
        "    loss.backward()\n    optimizer.zero_grad()\n    optimizer.step()"
    )
    capsys.readouterr()
    shell.run_cell(cell, store_history=True)
    assert capsys.readouterr().err.startswith("In[2]:4:5  TL101 error  zero-grad-after-backward")
    shell.run_cell("1 + 1", store_history=True)
    assert capsys.readouterr().err == ""
    shell.run_cell("%unload_ext trueloop")
    assert running() is None


def test_a_loop_without_a_file_is_not_looked_at_for_ever(parts: Any) -> None:
    model, optimizer = parts
    text = (
        "for _ in range(90):\n    optimizer.zero_grad()\n"
        "    model(torch.randn(8, 4)).square().mean().backward()\n    optimizer.step()"
    )
    names = {"torch": torch, "model": model, "optimizer": optimizer}
    with trueloop.watch(show=False):
        # A thread of its own, so that no loop of pytest's is around it.
        trains = threading.Thread(target=lambda: exec(text, names))
        trains.start()
        trains.join()
        session = running()
        assert session is not None
        assert not session.watcher.hub.sampling
