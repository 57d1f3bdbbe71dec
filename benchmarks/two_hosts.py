"""Two hosts on one machine: killed, killed while they save, cut off from each other; then compared
with the run that was left alone, bit for bit.

    python benchmarks/two_hosts.py [--case NAME ...] [--epochs 40]

Each host is a network namespace with an address, a host name and a /etc/hosts of its own, joined to
the other by a virtual cable. On each, examples/launch/torchrun.sh trains the spiral with one rank;
the two meet by torchrun's c10d rendezvous. A host whose torchrun has ended with an error is started
again after 20 seconds, as an init system, SLURM or Kubernetes does it.

Prints a table, writes benchmarks/results/two_hosts.json, and ends with 1 if a run differs. Linux
only, as root, with iproute2.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import save_results, table

ROOT = Path(__file__).parents[1]
LAUNCH = ROOT / "examples" / "launch" / "torchrun.sh"
EVERY = "25 updates"
BACK_AFTER = 20.0
"""Seconds until a host whose torchrun has failed is there again."""
LIMIT = 400.0
CUT = 30.0


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@dataclass
class Host:
    name: str
    address: str
    command: list[str] = field(default_factory=list)
    folder: Path = Path()
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0
    back_at: float = 0.0
    gone: bool = False
    """It does not come back."""

    @property
    def cable(self) -> str:
        return f"{self.name}-0"

    def start(self) -> None:
        inside = f'hostname {self.name} && exec "$@"'
        words = ["ip", "netns", "exec", self.name, "unshare", "--uts", "sh", "-c", inside, "sh"]
        self.starts += 1
        with (self.folder / f"{self.name}.log").open("ab") as log:
            log.write(f"--- start {self.starts}\n".encode())
            log.flush()
            self.process = subprocess.Popen(
                [*words, *self.command], stdout=log, stderr=subprocess.STDOUT, cwd=self.folder
            )

    def pids(self) -> list[int]:
        found = subprocess.run(
            ["ip", "netns", "pids", self.name], capture_output=True, text=True, check=True
        )
        return [int(word) for word in found.stdout.split()]

    def workers(self) -> list[int]:
        """The ranks on it: the children of torchrun."""
        assert self.process is not None
        found = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(word) for word in found.split()]

    def kill(self, pids: list[int] | None = None) -> int:
        """SIGKILL to these processes of it, or to all; how many there were."""
        doomed = self.pids() if pids is None else pids
        for pid in doomed:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return len(doomed)


@contextmanager
def two_hosts() -> Iterator[list[Host]]:
    """Two namespaces and the cable between them, taken away at the end with all that runs there."""
    hosts = [Host("trueloop-a", "10.77.0.1"), Host("trueloop-b", "10.77.0.2")]
    names = "".join(f"{host.address} {host.name}\n" for host in hosts)
    try:
        for host in hosts:
            ip("netns", "add", host.name)
            place = Path("/etc/netns") / host.name  # `ip netns exec` shows it as /etc
            place.mkdir(parents=True)
            (place / "hosts").write_text(f"127.0.0.1 localhost\n{names}")
        a, b = hosts
        ip(
            "link",
            "add",
            a.cable,
            "netns",
            a.name,
            "type",
            "veth",
            "peer",
            b.cable,
            "netns",
            b.name,
        )
        for host in hosts:
            ip("-n", host.name, "addr", "add", f"{host.address}/24", "dev", host.cable)
            ip("-n", host.name, "link", "set", "lo", "up")
            ip("-n", host.name, "link", "set", host.cable, "up")
        yield hosts
    finally:
        for host in hosts:
            with suppress(subprocess.CalledProcessError):
                host.kill()
                ip("netns", "del", host.name)
            shutil.rmtree(Path("/etc/netns") / host.name, ignore_errors=True)


class Training:
    """One training on the hosts, seen from outside."""

    def __init__(self, hosts: list[Host], folder: Path, epochs: int, nodes: str) -> None:
        self.hosts, self.folder = hosts, folder
        self.run = folder / "run"
        self.began = time.monotonic()
        words = ["spiral", "--run", str(self.run), "--epochs", str(epochs), "--save-every", EVERY]
        environment = {
            "HOSTS": nodes, "MAIN": hosts[0].name, "RANKS": "1", "RESTARTS": "20",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }  # fmt: skip
        settings = [f"{name}={value}" for name, value in environment.items()]
        for host in hosts:
            host.command = ["env", *settings, str(LAUNCH), *words, "--quiet"]
            host.folder, host.starts, host.gone, host.process = folder, 0, False, None

    def poll(self) -> bool:
        """Start hosts that have failed again; whether all are at their end."""
        running = False
        for host in self.hosts:
            if host.process is None or host.gone:
                continue
            status = host.process.poll()
            if status is None:
                running = True
            elif status:
                running = True
                if not host.back_at:
                    host.back_at = time.monotonic() + BACK_AFTER
                elif time.monotonic() >= host.back_at:
                    host.back_at = 0.0
                    host.start()
        if time.monotonic() - self.began > LIMIT:
            raise TimeoutError(f"no end after {LIMIT:.0f} s: see the logs in {self.folder}")
        return not running

    def until(self, reached: Callable[[], bool], pause: float = 0.02) -> None:
        while not reached():
            if self.poll():
                raise RuntimeError("the run has ended before it was disturbed: more --epochs")
            time.sleep(pause)

    def wait(self) -> None:
        while not self.poll():
            time.sleep(0.02)

    def saved(self) -> int:
        """The update of the newest checkpoint, 0 before the first."""
        names = [each.name for each in self.folder.glob("run/checkpoints/e*")]
        return max((int(name.rpartition("u")[2]) for name in names), default=0)

    def half_saved(self) -> list[str]:
        """Checkpoints that are being written, or were when their writer died."""
        return [each.name for each in self.folder.glob("run/checkpoints/.e*")]


# ------------------------------------------------------------------------------- cases


def left_alone(training: Training, updates: int) -> str:
    return ""


def ranks_killed(training: Training, updates: int) -> str:
    host = training.hosts[1]
    training.until(lambda: training.saved() >= updates // 3)
    host.kill(host.workers())
    return f"at update {training.saved()} or later"


def host_killed(number: int) -> Callable[[Training, int], str]:
    def disturb(training: Training, updates: int) -> str:
        training.until(lambda: training.saved() >= updates // 3)
        killed = training.hosts[number].kill()
        return f"{killed} processes at update {training.saved()} or later"

    return disturb


def killed_while_saving(training: Training, updates: int) -> str:
    """Kill rank 0 between the first byte of a checkpoint and its rename."""
    for attempt in range(1, 20):
        start = training.saved()
        training.until(lambda start=start: training.saved() >= max(start, updates // 4))
        by_host = [(host, host.pids()) for host in training.hosts]
        training.until(lambda: bool(training.half_saved()), pause=0.0)
        for host, pids in by_host[:1]:
            host.kill(pids)
        if left := training.half_saved():
            return f"{left[0]} left (attempt {attempt})"
    raise RuntimeError("no kill has met a checkpoint's writing")


def cut_off(training: Training, updates: int) -> str:
    """The cable out for half a minute."""
    training.until(lambda: training.saved() >= updates // 3)
    host, before = training.hosts[1], training.saved()
    ip("-n", host.name, "link", "set", host.cable, "down")
    end = time.monotonic() + CUT
    training.until(lambda: time.monotonic() > end)
    ip("-n", host.name, "link", "set", host.cable, "up")
    return f"{CUT:.0f} s, from update {before} or later; {training.saved()} at its end"


def host_lost(training: Training, updates: int) -> str:
    training.until(lambda: training.saved() >= updates // 3)
    host = training.hosts[1]
    host.gone = True
    host.kill()
    return f"for good, at update {training.saved()} or later"


CASES: dict[str, tuple[str, Callable[[Training, int], str], str]] = {
    "left alone": ("2", left_alone, "bitwise"),
    "the ranks of host b killed": ("2", ranks_killed, "bitwise"),
    "host b killed": ("2", host_killed(1), "bitwise"),
    "host a killed": ("2", host_killed(0), "bitwise"),
    "host a killed while saving": ("2", killed_while_saving, "bitwise"),
    "the cable out for 30 s": ("2", cut_off, "bitwise"),
    "host b lost, 1:2": ("1:2", host_lost, "finished"),
}


def end_of(run: Path) -> dict[str, Any]:
    """All that a run has to end with: its last state, and its log but for the clocks."""
    from kill_trials import log_in

    from trueloop import load_checkpoint

    state = load_checkpoint(run / "checkpoints")
    clocks = ("seconds", "records")  # whose scores are in the log
    return {
        "state": {name: value for name, value in state.items() if name not in clocks},
        "log": log_in(run.parent),
    }


def updates_of(end: dict[str, Any]) -> int:
    _epoch, _batch, updates, _skipped = end["state"]["step"]["counters"]
    return int(updates)


def compared(wanted: dict[str, Any], found: dict[str, Any], how: str) -> str:
    """`bitwise equal`, or what differs; on fewer ranks, by how much the weights do."""
    from kill_trials import difference

    wrong = difference(wanted, found)
    if wrong is None:
        return "bitwise equal"
    if how == "bitwise":
        return wrong
    theirs, ours = wanted["state"], found["state"]
    if updates_of(found) != updates_of(wanted):
        return f"{updates_of(found)} updates in place of {updates_of(wanted)}"
    most = max(
        float((ours["model"][name] - value).abs().max())
        for name, value in theirs["model"].items()
        if value.is_floating_point()
    )
    return f"all updates; weights differ by {most:.1g} at most"


def run_case(
    case: str, hosts: list[Host], folder: Path, epochs: int, updates: int
) -> dict[str, Any]:
    nodes, disturb, _ = CASES[case]
    folder.mkdir()
    training = Training(hosts, folder, epochs, nodes)
    for host in hosts:
        host.start()
    what = disturb(training, updates)
    disturbed = time.monotonic()
    made = training.saved()
    training.until(lambda: training.saved() > made) if updates else None
    back = time.monotonic() - disturbed
    training.wait()
    return {
        "case": case,
        "what": what,
        "starts of torchrun": " + ".join(str(host.starts) for host in hosts),
        "next checkpoint after": f"{back:.1f} s" if updates and case != "left alone" else "",
        "seconds": round(time.monotonic() - training.began, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", action="append", choices=list(CASES))
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--keep", type=Path, help="a folder for the runs and logs, to look at")
    options = parser.parse_args()
    if os.geteuid() or not shutil.which("ip") or sys.platform != "linux":
        print("network namespaces need Linux, root and iproute2: sudo apt install iproute2, then "
              f"sudo {sys.executable} {sys.argv[0]}", file=sys.stderr)  # fmt: skip
        return 2
    first = next(iter(CASES))
    cases = [first, *(name for name in options.case or CASES if name != first)]
    rows, updates, reference = [], 0, {}
    with tempfile.TemporaryDirectory() as temporary, two_hosts() as hosts:
        place = options.keep or Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        for number, case in enumerate(cases):
            folder = place / str(number)
            row = run_case(case, hosts, folder, options.epochs, updates)
            found = end_of(folder / "run")
            updates, reference = updates or updates_of(found), reference or found
            row["ends"] = compared(reference, found, CASES[case][2])
            rows.append(row)
            print(", ".join(f"{name}: {value}" for name, value in row.items()), flush=True)
    print("\n" + table(rows))
    facts = {"epochs": options.epochs, "updates": updates, "load": os.getloadavg()}
    if not options.case:
        print(save_results("two_hosts", {**facts, "cases": rows}))
    right = ("bitwise equal", "all updates")
    return 0 if all(row["ends"].startswith(right) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
