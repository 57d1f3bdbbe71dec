"""On a GPU: the commands, each in a process of its own, as a user types them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from on_gpu import DEVICE, needs_cuda, needs_device

pytestmark = needs_device
TEXT = "To be, or not to be, that is the question. " * 200


def run(*words: object, folder: Path, status: int = 0, module: str = "trueloop") -> str:
    """What `python -m trueloop WORDS` prints, both streams."""
    environment = {**os.environ, "CI": "", "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, words)],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == status, done.stdout[-4000:]
    return done.stdout


def results(folder: Path, name: str = "run") -> dict[str, float]:
    found: dict[str, float] = json.loads((folder / name / "results.json").read_text())["scores"]
    return found


@pytest.mark.parametrize(
    "options",
    [
        "",
        "--precision bf16 --matmul tf32",
        "--precision fp16 --accumulate 2",
        "--compile step",
        "--compile --no-deterministic",
        "--ema 0.99 --outliers clip --log-ranks",
    ],
)
def test_train_and_report(options: str, tmp_path: Path) -> None:
    words = f"train spiral --epochs 12 --device {DEVICE.type} --run run {options}".split()
    out = run(*words, folder=tmp_path)
    assert "Traceback" not in out
    environment = json.loads((tmp_path / "run" / "environment.json").read_text())
    assert str(DEVICE.type) in json.dumps(environment)
    run("report", "run", folder=tmp_path)
    run("runs", ".", folder=tmp_path)


@pytest.mark.parametrize(
    "options", ["", "--accumulate 3 --precision fp16", "--compile step", "--ema 0.99"]
)
def test_verify_resume(options: str, tmp_path: Path) -> None:
    words = f"verify-resume spiral --updates 60 --device {DEVICE.type} {options}".split()
    out = run(*words, folder=tmp_path)
    assert "the same" in out, out


def test_a_language_model_is_trained_and_generates(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT)
    train = "train text --data text.txt --updates 60 --batch-size 8 --precision bf16 --run run"
    run(*train.split(), "--device", DEVICE.type, folder=tmp_path)
    ask = "generate run --prompt To --max-new-tokens 40 --temperature 0 --device"
    there, here = (run(*ask.split(), device, folder=tmp_path) for device in (DEVICE.type, "cpu"))
    assert there == here
    assert len(there.strip()) > 20


def test_images_are_trained(tmp_path: Path) -> None:
    import numpy as np
    from PIL import Image

    draws = np.random.default_rng(0)
    for kind in range(3):
        (tmp_path / "photos" / f"kind{kind}").mkdir(parents=True)
        for each in range(30):
            pixels = draws.integers(0, 90, (32, 32, 3)) + 70 * kind
            Image.fromarray(pixels.astype(np.uint8)).save(
                tmp_path / "photos" / f"kind{kind}" / f"{each}.png"
            )
    train = "train images --data photos --epochs 2 --batch-size 8 --matmul tf32 --run run --device"
    out = run(*train.split(), DEVICE.type, folder=tmp_path)
    assert "Traceback" not in out
    run("evaluate", "run", "--device", DEVICE.type, folder=tmp_path)


def test_the_profile_counts_the_kernels(tmp_path: Path) -> None:
    words = "train spiral --epochs 8 --profile 10 --run run --device"
    run(*words.split(), DEVICE.type, folder=tmp_path)
    summary = json.loads((tmp_path / "run" / "profile" / "summary.json").read_text())
    assert summary["updates"] == 10
    assert summary["device"] == DEVICE.type
    assert sum(each["share"] for each in summary["phases"]) == pytest.approx(1, abs=0.35)
    assert bool(summary.get("kernels")) == (DEVICE.type == "cuda")


def test_tune(tmp_path: Path) -> None:
    words = "tune spiral --minutes 0.4 --device"
    run(*words.split(), DEVICE.type, folder=tmp_path)
    assert (tmp_path / "tuned.yaml").is_file()


def test_env_names_the_device(tmp_path: Path) -> None:
    out = run("env", folder=tmp_path)
    assert ("cuda:0" in out) == (DEVICE.type == "cuda")


@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_torchrun_with_one_rank(parallel: str, tmp_path: Path) -> None:
    words = (
        f"--standalone --nproc-per-node 1 -m -- trueloop train spiral --epochs 6 --run run "
        f"--parallel {parallel} --precision bf16 --device {DEVICE.type}"
    )
    run(*words.split(), folder=tmp_path, module="torch.distributed.run")
    alone = f"train spiral --epochs 6 --run alone --precision bf16 --device {DEVICE.type}"
    run(*alone.split(), folder=tmp_path)
    ours, plain = results(tmp_path), results(tmp_path, "alone")
    for name in ("train_loss", "val_loss"):
        assert ours[name] == pytest.approx(plain[name], rel=0.05), name


SCRIPT = """\
import time, torch
from torch import nn

torch.manual_seed(0)
device = torch.device("{device}")
model = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU())
model = nn.Sequential(model, nn.Linear(1024, 10)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
x, y = torch.randn(4096, 64), torch.randint(0, 10, (4096,))
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 256, shuffle=True)
total = torch.zeros((), device=device)
for epoch in range({epochs}):
    model.train()
    for inputs, targets in loader:
        {wait}
        inputs, targets = inputs.to(device), targets.to(device)
        loss = nn.functional.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
print(f"{{float(total):.9f}}")
"""


def watch(folder: Path, *options: str, **values: object) -> tuple[str, dict[str, object]]:
    (folder / "train.py").write_text(SCRIPT.format(device=DEVICE.type, **values))
    plain = run_script(folder)
    words = ["watch", "--format", "json", "--output", "found.json", *options, "train.py"]
    out = run(*words, folder=folder)
    found: dict[str, object] = json.loads((folder / "found.json").read_text())
    assert plain.strip() in out
    return out, found


def run_script(folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_a_watched_program_prints_the_same_and_raises_no_alarm(tmp_path: Path) -> None:
    _, found = watch(tmp_path, epochs=5, wait="pass")
    problems = [each for each in found["findings"] if each["severity"] != "advice"]  # type: ignore[attr-defined]
    assert problems == []


@needs_cuda
def test_the_parts_of_an_update_have_the_times_of_the_gpu(tmp_path: Path) -> None:
    """What the program does while the GPU is idle counts where it is done."""
    for wait, most in (("time.sleep(0.01)", "rest"), ("pass", "data")):
        _, found = watch(tmp_path, "--speed", epochs=6, wait=wait)
        speed: dict[str, Any] = found["speed"]  # type: ignore[assignment]
        assert speed["device"] == DEVICE.type
        shares = {name: part["share"] for name, part in speed["parts"].items()}
        assert sum(shares.values()) == pytest.approx(1, abs=0.05)
        assert max(shares, key=shares.__getitem__) == most


DIES = """\
import sys
import torch
from torch import nn

samples, device = int(sys.argv[1]), torch.device("cuda")
torch.cuda.set_per_process_memory_fraction(2e9 / torch.cuda.get_device_properties(0).total_memory)
blocks = [m for _ in range(4) for m in (nn.Linear(1024, 1024), nn.ReLU())]
model = nn.Sequential(*blocks, nn.Linear(1024, 10)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for update in range(3):
    x = torch.randn(samples, 1024, device=device)
    y = torch.zeros(samples, dtype=torch.int64, device=device)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
"""


@needs_cuda
def test_out_of_memory_names_a_batch_that_fits(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(DIES)
    words = "watch --format json --output found.json train.py 100000"
    out = run(*words.split(), folder=tmp_path, status=1)
    assert "OutOfMemoryError" in out
    memory = json.loads((tmp_path / "found.json").read_text())["memory"]
    assert memory["samples"] == 100_000
    advised = next(each["samples"] for each in memory["fits"] if each["what"] == "batch size")
    assert 20_000 < advised < 100_000
    done = subprocess.run(
        [sys.executable, "train.py", str(advised)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout == "done\n", done.stderr[-2000:]
