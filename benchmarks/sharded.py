"""Sharded data: first batch after a cold start, samples per second, memory, and 20 kills.

10^7 samples of 8 int32 and a label in 1,000 Parquet files of 10,000 rows, made in a temporary
folder (0.4 GB) and deleted after. Each measurement is a process of its own, and the files are
dropped from the page cache before it.

    python benchmarks/sharded.py [--samples 10000000] [--kills 20] [--folder DIR]

Beside peers at 10^6 samples, in their own formats, each with the Python of an environment that has
it (and torch): `--peer mosaic=…/python --peer litdata=…/python --peer grain=…/python`. All are
measured in one process without workers, in batches of 256, shuffled, on a local disk.

Linux only, since it reads /proc. Writes benchmarks/results/sharded.json.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

GOAL = {"first_batch_seconds": 1.0, "megabytes_above_torch": 300.0}
SHARDS = 1000
BATCH = 256
PEER_SAMPLES = 10**6
MEASURED_BATCHES = 2000
SAVE_EVERY = 100


def megabytes(field: str) -> float:
    """VmRSS or VmHWM of this process."""
    found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024 / 1e6


def columns(first: int, count: int) -> tuple[Any, Any]:
    """Tokens (int32, shape (count, 8)) and labels of some samples, by their numbers."""
    import numpy as np

    numbers = np.arange(first, first + count, dtype=np.int64)
    tokens = (numbers[:, None] * 31 + np.arange(8) * 7919) % 50_257
    return tokens.astype(np.int32), numbers


def write_parquet(folder: Path, samples: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True)
    each = samples // SHARDS
    for shard in range(SHARDS):
        tokens, labels = columns(shard * each, each)
        lists = pa.FixedSizeListArray.from_arrays(pa.array(tokens.ravel()), 8)
        table = pa.table({"tokens": lists, "label": labels})
        path = folder / f"{shard:04d}.parquet"
        pq.write_table(table, path, row_group_size=1000, compression="none", use_dictionary=False)


def forget_pages(folder: Path) -> None:
    """Drop the files from the page cache."""
    os.sync()
    for path in folder.rglob("*"):
        if path.is_file():
            handle = os.open(path, os.O_RDONLY)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(handle)


# One loader of each library: (batches from a position on, the state after them)


def ours(folder: Path, state: Any) -> tuple[Iterator[Any], Callable[[], Any]]:
    from trueloop import Feed, Shards

    feed = Feed(Shards(folder, fields=("tokens", "label")), BATCH, shuffle=True, seed=1)
    if state is not None:
        feed.load_state_dict(state)
    return iter(feed.epoch(*feed.position)), feed.state_dict


def pretend_torchvision() -> None:
    """MosaicML Streaming imports two names of it, which nothing here uses."""
    with contextlib.suppress(ImportError):
        import transformers  # noqa: F401 - it looks for torchvision, and must find none
    for name in ("", ".datasets", ".transforms", ".transforms.functional"):
        sys.modules["torchvision" + name] = types.ModuleType("torchvision" + name)
    sys.modules["torchvision.datasets"].VisionDataset = object  # type: ignore[attr-defined]
    sys.modules["torchvision.transforms.functional"].to_tensor = None  # type: ignore[attr-defined]


def mosaic(folder: Path, state: Any) -> tuple[Iterator[Any], Callable[[], Any]]:
    pretend_torchvision()
    from streaming import StreamingDataLoader, StreamingDataset

    data = StreamingDataset(local=str(folder), shuffle=True, shuffle_seed=1, batch_size=BATCH)
    loader = StreamingDataLoader(data, batch_size=BATCH, num_workers=0)
    if state is not None:
        loader.load_state_dict(state)
    return ((batch["tokens"], batch["label"]) for batch in loader), loader.state_dict


def litdata(folder: Path, state: Any) -> tuple[Iterator[Any], Callable[[], Any]]:
    from litdata import StreamingDataLoader, StreamingDataset

    data = StreamingDataset(str(folder), shuffle=True, seed=1, drop_last=False)
    loader = StreamingDataLoader(data, batch_size=BATCH, num_workers=0)
    if state is not None:
        loader.load_state_dict(state)
    return ((batch["tokens"], batch["label"]) for batch in loader), loader.state_dict


def grain(folder: Path, state: Any) -> tuple[Iterator[Any], Callable[[], Any]]:
    import grain.python as library
    import numpy as np
    import torch

    source = library.ArrayRecordDataSource(sorted(map(str, folder.glob("*.array_record"))))

    def parsed(record: bytes) -> Any:
        words = np.frombuffer(record, dtype=np.int32)
        return words[:8], words[8:].view(np.int64)[0]

    data = library.MapDataset.source(source).shuffle(seed=1).map(parsed).batch(BATCH)
    batches = iter(data.to_iter_dataset(library.ReadOptions(num_threads=0)))
    if state is not None:
        batches.set_state(state)
    tensors = (tuple(torch.from_numpy(part) for part in batch) for batch in batches)
    return tensors, batches.get_state


def write_mosaic(folder: Path, samples: int) -> None:
    mosaic_columns = {"tokens": "ndarray:int32:8", "label": "int"}
    pretend_torchvision()
    from streaming import MDSWriter

    tokens, labels = columns(0, samples)
    with MDSWriter(out=str(folder), columns=mosaic_columns, size_limit=samples * 48 // 100) as out:
        for row, label in zip(tokens, labels.tolist(), strict=True):
            out.write({"tokens": row, "label": label})


def write_litdata(folder: Path, samples: int) -> None:
    import torch
    from litdata.streaming import Cache

    tokens, labels = columns(0, samples)
    cache = Cache(str(folder), chunk_size=samples // 100)
    for number, (row, label) in enumerate(
        zip(torch.from_numpy(tokens), labels.tolist(), strict=True)
    ):
        cache[number] = {"tokens": row, "label": label}
    cache.done()
    cache.merge()


def write_grain(folder: Path, samples: int) -> None:
    from array_record.python.array_record_module import ArrayRecordWriter

    folder.mkdir(parents=True)
    tokens, labels = columns(0, samples)
    each = samples // 100
    for shard in range(100):
        writer = ArrayRecordWriter(str(folder / f"{shard:04d}.array_record"), "group_size:1")
        for k in range(shard * each, (shard + 1) * each):
            writer.write(tokens[k].tobytes() + labels[k].tobytes())
        writer.close()


LIBRARIES: dict[str, Callable[[Path, Any], tuple[Iterator[Any], Callable[[], Any]]]] = {
    "trueloop": ours,
    "mosaic": mosaic,
    "litdata": litdata,
    "grain": grain,
}
WRITERS = {"mosaic": write_mosaic, "litdata": write_litdata, "grain": write_grain}


def measure(library: str, folder: Path) -> dict[str, Any]:
    """First batch, speed, memory and a resume in the middle, in this process."""
    import torch

    torch.set_num_threads(1)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = megabytes("VmRSS")
    start, cpu = time.perf_counter(), time.process_time()
    batches, state = LIBRARIES[library](folder, None)
    next(batches)
    first, first_cpu = time.perf_counter() - start, time.process_time() - cpu
    start, cpu, samples = time.perf_counter(), time.process_time(), 0
    for _ in range(MEASURED_BATCHES - 1):
        samples += len(next(batches)[1])
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = megabytes("VmHWM") - before
    kept = json.loads(json.dumps(state()))
    expected = [next(batches) for _ in range(5)]
    start = time.perf_counter()
    try:
        resumed, _ = LIBRARIES[library](folder, kept)
        found = [next(resumed) for _ in range(5)]
        resume = time.perf_counter() - start
        is_exact = all(torch.equal(a[1], b[1]) for a, b in zip(expected, found, strict=True))
    except Exception as error:
        resume, is_exact = None, f"{type(error).__name__}: {str(error)[:100]}"
    return {
        "library": library,
        "first_batch_seconds": round(first, 3),
        "first_batch_cpu_seconds": round(first_cpu, 3),
        "samples_per_second": round(samples / seconds),
        "samples_per_cpu_second": round(samples / cpu),
        "megabytes_above_torch": round(peak, 1),
        "resume_seconds": None if resume is None else round(resume, 3),
        "resume_is_exact": is_exact,
    }


def train(folder: Path, log: Path, updates: int, kill_at: int) -> None:
    """A logistic regression on the shards, saved every hundred updates, until it kills itself."""
    import torch
    from torch import nn

    import trueloop

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def loss_fn(model: nn.Module, batch: Any) -> torch.Tensor:
        tokens, labels = batch
        return nn.functional.cross_entropy(model(tokens / 50_257), labels % 2)

    step = trueloop.Step(model, optimizer, loss_fn)
    shards = trueloop.Shards(folder, fields=("tokens", "label"))
    feed = trueloop.Feed(shards, BATCH, shuffle=True, seed=2)
    if log.exists():
        state = torch.load(log, weights_only=True)
        step.load_state_dict(state["step"])
        model.load_state_dict(state["model"])
        feed.load_state_dict(state["feed"])
    for batch in feed.epoch(*feed.position):
        step(batch)
        done = feed.position[1]
        if done % SAVE_EVERY == 0 or done == updates:
            state = {
                "step": step.state_dict(),
                "model": model.state_dict(),
                "feed": feed.state_dict(),
            }
            torch.save(state, log.with_suffix(".tmp"))
            log.with_suffix(".tmp").replace(log)
        if done == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if done == updates:
            return


def kills(folder: Path, samples: int, count: int) -> dict[str, Any]:
    """The weights after an epoch with `count` kills, beside those of one without."""
    import torch

    updates = -(-samples // BATCH)
    places = sorted(random.Random(7).sample(range(1, updates), count))
    results = {}
    with tempfile.TemporaryDirectory() as logs:
        for name, stops in (("whole", []), ("killed", places)):
            log = Path(logs, f"{name}.pt")
            for place in [*stops, 0]:
                done = child("--train", str(folder), str(log), str(updates), str(place))
                assert done.returncode == (-signal.SIGKILL if place else 0), done.stderr
            results[name] = torch.load(log, weights_only=True)
    same = all(
        torch.equal(results["whole"]["model"][key], results["killed"]["model"][key])
        for key in results["whole"]["model"]
    )
    return {"updates": updates, "kills": count, "places": places, "bitwise_equal": same}


def child(*arguments: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    command = [python, __file__, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def measured(library: str, folder: Path, python: str = sys.executable) -> dict[str, Any]:
    """`measure` in a new process, after the files have left the page cache."""
    forget_pages(folder)
    done = child("--measure", library, str(folder), python=python)
    if done.returncode:
        return {"library": library, "error": done.stderr.strip().splitlines()[-1][:200]}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=10**7)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--folder", type=Path, help="where the data are made")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON")
    for hidden, count in (("--measure", 2), ("--train", 4), ("--write", 2)):
        parser.add_argument(hidden, nargs=count, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure[0], Path(options.measure[1]))))
    elif options.train:
        folder, log, updates, place = options.train
        train(Path(folder), Path(log), int(updates), int(place))
    elif options.write:
        WRITERS[options.write[0]](Path(options.write[1]), PEER_SAMPLES)
    else:
        root = Path(tempfile.mkdtemp(prefix="sharded-", dir=options.folder))
        try:
            run(root, options)
        finally:
            shutil.rmtree(root)


def run(root: Path, options: argparse.Namespace) -> None:
    from common import save_results, table

    import trueloop

    write_parquet(root / "large", options.samples)
    start = time.perf_counter()
    print(trueloop.Shards(root / "large"))
    index_seconds = round(time.perf_counter() - start, 2)
    rows = [{"samples": options.samples, **measured("trueloop", root / "large")}]
    if options.peer:
        write_parquet(root / "trueloop", PEER_SAMPLES)
        trueloop.Shards(root / "trueloop")
        rows.append({"samples": PEER_SAMPLES, **measured("trueloop", root / "trueloop")})
    for name, python in (peer.split("=", 1) for peer in options.peer):
        done = child("--write", name, str(root / name), python=python)
        if done.returncode:
            print(f"{name} cannot write: {done.stderr.strip().splitlines()[-1]}")
            continue
        rows.append({"samples": PEER_SAMPLES, **measured(name, root / name, python)})
    print(table([row for row in rows if "error" not in row]))
    for row in rows:
        if "error" in row:
            print(f"{row['library']}: {row['error']}")
    found = kills(root / "large", options.samples, options.kills) if options.kills else None
    if found is not None:
        equal = "bitwise equal" if found["bitwise_equal"] else "DIFFERENT"
        print(f"weights after {found['updates']} updates with {found['kills']} kills: {equal}")
    met = all(rows[0][name] <= most for name, most in GOAL.items())
    print(f"goal {GOAL}: {'met' if met else 'MISSED'}; index made in {index_seconds} s")
    save_results(
        "sharded",
        {"goal": GOAL, "met": met, "index_seconds": index_seconds, "rows": rows, "kills": found},
    )


if __name__ == "__main__":
    main()
