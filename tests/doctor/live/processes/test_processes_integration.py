"""Programs that train in processes which they start themselves, and in ranks: one report."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import watched_scripts

from on_ranks import _CONTEXT as FORKSERVER, on_ranks
from trueloop.doctor.live.processes.children import ChildProcesses, Order

HEAD = """\
import multiprocessing as mp
import os, signal, sys
import torch
import torch.distributed as dist
from torch import nn

torch.set_num_threads(1)

def train(rank, updates, is_faulty=True):
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for update in range(updates):
        loss = model(torch.randn(8, 4)).square().mean()
        if is_faulty:
            loss.backward()
            optimizer.zero_grad()
            optimizer.step()  # the faulty one
        else:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print("trained", rank, flush=True)

def ranks(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for update in range(8):
        torch.manual_seed(10 * update + rank)
        optimizer.zero_grad()
        loss = model.module(torch.randn(8, 4)).square().mean()  # around the wrapper
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()

def start(how, target, *arguments):
    found = [mp.get_context(how).Process(target=target, args=each) for each in arguments]
    for each in found:
        each.start()
    for each in found:
        each.join()
    print([each.exitcode for each in found])

"""


def watched(
    folder: Path, text: str, *options: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """What the program's own process did, and the report as an object."""
    (folder / "train.py").write_text(HEAD + text)
    words = ["watch", "--format", "json", "--output", "found.json", *options, "train.py"]
    done = watched_scripts.trueloop(words, folder)
    return done, json.loads((folder / "found.json").read_text())


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(HEAD.splitlines(), 1) if text in line)


def told(found: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (each["code"], each["line"], each["count"], each.get("seen_in"))
        for each in found["findings"]
    ]


ZEROED = line_of("the faulty one") - 1


def test_forked_ranks_have_one_report(tmp_path: Path) -> None:
    done, found = watched(tmp_path, "start('fork', ranks, (0, os.getcwd()), (1, os.getcwd()))")
    assert (done.returncode, done.stdout, done.stderr) == (0, "[0, 0]\n", "")
    assert told(found) == [("TL901", line_of("around the wrapper"), 2, None)]
    assert (found["updates"], found["optimizers"], found["processes"]) == (16, 2, 2)
    assert (found["without_report"], found["problems"]) == ([], [])


def test_a_spawned_process_is_watched_from_its_start(tmp_path: Path) -> None:
    text = (
        "if __name__ == '__main__':\n"
        "    import torch.multiprocessing\n"
        "    torch.multiprocessing.spawn(train, args=(6,), nprocs=1)\n"
    )
    done, found = watched(tmp_path, text)
    assert (done.returncode, done.stdout, done.stderr) == (0, "trained 0\n", "")
    assert told(found) == [("TL101", ZEROED, 1, None)]
    assert (found["updates"], found["processes"], found["problems"]) == (6, 1, [])


def _train_wrongly() -> None:
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.zero_grad()
        optimizer.step()


def test_a_process_of_a_forkserver_is_watched(tmp_path: Path) -> None:
    order = Order("", str(tmp_path), None, None, None, False, False, "")
    followed = ChildProcesses(order)
    followed.begin()
    try:
        process = FORKSERVER.Process(target=_train_wrongly)
        process.start()
        process.join()
        (part,) = followed.parts()
    finally:
        followed.end()
    assert [each.code for each in part.watched.findings] == ["TL101"]
    assert part.watched.updates == 6
    assert part.ended
    assert followed.parts() == []


def test_the_process_that_alone_has_a_fault_is_named(tmp_path: Path) -> None:
    text = "start('fork', train, (0, 6, False), (1, 6, True), (2, 6, False))"
    done, found = watched(tmp_path, text)
    assert told(found) == [("TL101", ZEROED, 1, "ForkProcess-2")]
    words = ["watch", "--exit-code", "train.py"]
    done = watched_scripts.trueloop(words, tmp_path)
    assert done.returncode == 1
    assert "zero-grad-after-backward  (only in ForkProcess-2)\n" in done.stderr
    assert "watched 18 updates of 3 optimizers in 3 processes; 1 error\n" in done.stderr


def test_what_dies_loses_nothing_that_was_found(tmp_path: Path) -> None:
    """One is killed, one raises as it would alone, one ends by `os._exit`."""
    text = (
        "def die(rank):\n"
        "    train(rank, 6)\n"
        "    if rank == 0: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    if rank == 1: raise ValueError('after training')\n"
        "    os._exit(5)\n"
        "start('fork', die, (0,), (1,), (2,))"
    )
    done, found = watched(tmp_path, text)
    assert done.stdout.splitlines()[-1] == "[-9, 1, 5]"
    assert done.stderr.startswith("Process ForkProcess-2:\nTraceback (most recent call last):\n")
    assert re.findall(r"line \d+, in (\w+)", done.stderr) == ["_bootstrap", "run", "die"]
    assert done.stderr.endswith("\nValueError: after training\n")
    assert told(found) == [("TL101", ZEROED, 3, None)]
    assert found["without_report"] == ["ForkProcess-1"]
    text = watched_scripts.trueloop(["watch", "train.py"], tmp_path).stderr
    assert "trueloop: ForkProcess-1 did not report at its end" in text


def test_a_process_that_starts_others_hands_their_findings_on(tmp_path: Path) -> None:
    text = "def outer():\n    start('fork', train, (1, 6))\n    train(0, 6, False)\n"
    text += "start('fork', outer, ())"
    _, found = watched(tmp_path, text)
    assert told(found) == [("TL101", ZEROED, 1, "ForkProcess-1:1")]
    assert found["processes"] == 2


def test_workers_of_loaders_and_pools_are_left_alone(tmp_path: Path) -> None:
    text = (
        "from torch.utils.data import DataLoader\n"
        "def is_watched(*_):\n"
        "    return 'trueloop' in torch.optim.Optimizer.zero_grad.__code__.co_filename\n"
        "class Data(torch.utils.data.Dataset):\n"
        "    def __len__(self): return 2\n"
        "    def __getitem__(self, i): return is_watched()\n"
        "def show(): print(is_watched(), flush=True)\n"
        "print([bool(each) for each in DataLoader(Data(), 1, num_workers=1)])\n"
        "with mp.get_context('fork').Pool(1) as pool: print(pool.map(is_watched, [0, 1]))\n"
        "from concurrent.futures import ProcessPoolExecutor\n"
        "with ProcessPoolExecutor(1, mp.get_context('fork')) as pool:\n"
        "    print(list(pool.map(is_watched, [0])))\n"
        "mp.get_context('fork').Manager().shutdown()\n"
        "start('fork', show, ())\n"
    )
    done, found = watched(tmp_path, text)
    assert done.stdout.splitlines() == [
        "[False, False]", "[False, False]", "[False]", "True", "[0]",
    ]  # fmt: skip
    assert (done.stderr, found["findings"], found["problems"]) == ("", [], [])


def test_the_first_error_of_a_process_ends_it(tmp_path: Path) -> None:
    text = "start('fork', train, (0, 999))\nprint('on')"
    done, found = watched(tmp_path, text, "--fail-fast")
    assert done.stdout.splitlines() == ["[1]", "on"]
    assert done.returncode == 1
    assert (told(found), found["stopped"]) == ([("TL101", ZEROED, 1, None)], True)


# ---------------------------------------------------------------------- ranks


def _rank(folder: str, text: str) -> Any:
    """What a rank reports of a program that it watches."""
    from trueloop.cli.watch import WatchedProgram, prepared

    path = os.path.join(folder, "program.py")
    if os.environ["RANK"] == "0":
        with open(path, "w") as file:
            file.write(HEAD + text)
    dist.barrier()
    os.chdir(folder)
    output = f"found{os.environ['RANK']}.json"
    run = prepared(["--format", "json", "--output", output, path])
    assert isinstance(run, WatchedProgram)
    with contextlib.suppress(RuntimeError):
        run()
    run.report()
    if not os.path.exists(output):
        return None
    with open(output) as file:
        return json.load(file)


def test_the_first_rank_reports_what_all_have_found(tmp_path: Path) -> None:
    text = "train(0, 6, dist.get_rank() == 1)"
    first, second = on_ranks(2, _rank, str(tmp_path), text)
    assert second is None
    assert told(first) == [("TL101", ZEROED, 1, "rank 1")]
    assert (first["updates"], first["processes"], first["without_report"]) == (12, 2, [])


def test_a_rank_that_fails_reports_what_all_have_found(tmp_path: Path) -> None:
    # The launcher ends the other ranks only after the report of the one that has failed.
    text = (
        "train(0, 6, dist.get_rank() == 0)\n"
        "dist.barrier()\n"
        "if dist.get_rank() == 1: raise RuntimeError('as planned')\n"
        "while not os.path.exists('found1.json'): pass\n"
    )
    first, second = on_ranks(2, _rank, str(tmp_path), text)
    assert first is None
    assert told(second) == [("TL101", ZEROED, 1, "rank 0")]
    assert second["without_report"] == ["rank 0"]
