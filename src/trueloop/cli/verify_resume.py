"""`trueloop verify-resume TASK`: train straight, train again with a stop and a resume, compare."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from trueloop.cli import FAILED, OK
from trueloop.errors import ConfigError

if TYPE_CHECKING:
    from trueloop.cli._compare_runs import Difference, Divergence
    from trueloop.cli._segments import MicroBatch, Segment, Trace

MOST_SAID = 5
"""Differences to print: the later ones follow from the first."""


def main(argv: Sequence[str]) -> int:
    """Verify; the exit status: 0 if the resumed run is the straight one, else 1."""
    if not argv or argv[0] in ("-h", "--help"):
        print(usage())
        return OK
    from trueloop.cli._segments import Segment
    from trueloop.cli.options import VerifyOptions, settings_from, task_first

    task, options = task_first(argv, "verify-resume")
    settings = settings_from(task, options, run_options=VerifyOptions)
    assert isinstance(settings.run, VerifyOptions)
    if settings.run.compile == "auto":
        raise ConfigError(
            "--compile auto decides by the time of updates, and two runs may decide differently: "
            "write --compile step"
        )
    updates = settings.run.updates
    if updates is not None and updates < 1:
        raise ConfigError(f"--updates must be 1 or more, not {updates}: write --updates 100")
    with _shared_folder() as folder:
        straight = Segment(
            task=settings.task,
            argv=options,
            here=Path.cwd(),
            folder=folder / "straight",
            updates=updates,
        )
        return verify(straight, seed=settings.run.seed)


@contextmanager
def _shared_folder() -> Iterator[Path]:
    """A temporary folder, which rank 0 makes and removes for all ranks."""
    from trueloop import ranks

    with ExitStack() as stack:
        names = set(ranks.gathered(socket.gethostname(), "the names of the hosts"))
        place = Path.cwd() if len(names) > 1 else None  # /tmp is each host's own

        def make() -> str:
            return stack.enter_context(TemporaryDirectory(prefix="trueloop-", dir=place))

        yield Path(ranks.on_main(make, "a temporary folder"))
        ranks.barrier("the end of the comparison")


def usage() -> str:
    return (
        "usage: trueloop verify-resume TASK [options]\n\n"
        "Prove that a run of TASK, stopped and resumed, is the run that never stopped:\n"
        "train it straight, and again with a stop at a random point (inside an epoch, and\n"
        "inside an accumulation window where there is one) and a resume in a new process,\n"
        "through real checkpoints in a temporary folder. Weights, optimizer, scaler,\n"
        "schedule, random generators and log must be bitwise the same; if they are not,\n"
        "it says what differs first and what the likely cause is.\n\n"
        "exit status: 0 the same run; 1 a different run\n\n"
        "  trueloop verify-resume TASK --help  the options: --updates, and those of train\n\n"
        "example:\n  trueloop verify-resume spiral --accumulate 4 --updates 100"
    )


def verify(straight: Segment, *, seed: int) -> int:
    """Train the segments, compare them, and print the result; the exit status."""
    from trueloop import ranks
    from trueloop.cli._compare_runs import compare, compared, seen
    from trueloop.cli._segments import in_fresh_process

    trace = in_fresh_process(straight)
    _print(f"straight: {len(trace.steps)} batches, {trace.steps[-1].update} updates")
    # Several ranks agree on an end, which is then one update later.
    index = choose_stop(trace.steps, seed, spare=2 if ranks.is_distributed() else 0)
    last = trace.steps[index]
    stopped = replace(
        straight,
        folder=straight.folder.with_name("stopped"),
        updates=trace.updates,
        stop=(last.epoch, last.batch),
    )
    before = in_fresh_process(stopped)
    index, last = len(before.steps) - 1, before.steps[-1]
    _print(f"stopped after {_place(last)}")
    after = in_fresh_process(replace(stopped, stop=None, resume=True))
    _print(f"resumed: {len(after.steps)} batches")
    parted = _first_divergence(trace.steps, before.steps + after.steps)
    differences = ranks.on_main(
        lambda: compare(straight.folder, stopped.folder), "the comparison of the two runs"
    )
    if parted is None and not differences:
        where = _place(last)
        _print(
            f"the same run: stopped after {where} and resumed, it is bitwise the run that never "
            "stopped"
        )
        if ranks.is_main():
            _print(f"compared: {compared(straight.folder)}")
        return OK
    _print(f"not the same run: stopped after {_place(last)} and resumed, it is a different one")
    if parted is not None:
        _print(f"  differs first at {seen(parted)}")
    for one in differences[:MOST_SAID]:
        _print(f"  {one.where}: {one.what}")
    _print(f"likely cause: {_cause(straight, trace, index, parted, differences)}")
    return FAILED


def _cause(
    straight: Segment,
    trace: Trace,
    index: int,
    parted: Divergence | None,
    differences: list[Difference],
) -> str:
    """Why: the run itself cannot be repeated, which is tried, or only its resume."""
    from trueloop import ranks
    from trueloop.cli._compare_runs import cause_of_resume, cause_without_a_stop, compare
    from trueloop.cli._segments import in_fresh_process

    if parted is not None and parted.index <= index:
        return cause_without_a_stop(parted)
    again = replace(straight, folder=straight.folder.with_name("again"))
    parted_again = _first_divergence(trace.steps, in_fresh_process(again).steps)
    differs = ranks.on_main(
        lambda: bool(compare(straight.folder, again.folder)), "the comparison of the two runs"
    )
    if parted_again is not None or differs:
        return cause_without_a_stop(parted_again)
    return cause_of_resume(parted, trace, differences)


def _first_divergence(a: list[MicroBatch], b: list[MicroBatch]) -> Divergence | None:
    """The first place at which any rank's trace parts."""
    from trueloop import ranks
    from trueloop.cli._compare_runs import divergence

    found = [each for each in ranks.gathered(divergence(a, b), "their traces") if each is not None]
    return min(found, key=lambda each: each.index, default=None)


def choose_stop(steps: Sequence[MicroBatch], seed: int, spare: int = 0) -> int:
    """A micro-batch to stop after: at random, but where possible inside an epoch, and a later one
    than the first (what is carried from one epoch into the next is then lost), inside a window.
    At least `spare` updates follow the one that it belongs to."""
    end = steps[-1].update - spare
    places = [k for k, step in enumerate(steps[:-1]) if step.update + (not step.ended) <= end]
    if not places:
        raise ConfigError(
            f"a run of {steps[-1].update} updates has no place to stop at: write --updates "
            f"{2 + spare} or more"
        )
    for narrower in (
        [k for k in places if steps[k].epoch == steps[k + 1].epoch],
        [k for k in places if steps[k].epoch > 0],
        [k for k in places if not steps[k].ended],
    ):
        places = [k for k in places if k in narrower] or places
    return random.Random(seed).choice(places)


def _place(step: MicroBatch) -> str:
    window = "" if step.ended else ", inside a window"
    return f"batch {step.batch} of epoch {step.epoch + 1} (update {step.update}{window})"


def _print(line: str) -> None:
    print(line, flush=True)  # each segment takes its time
