"""Runs a program in a child process and notes all by which its training could be told from
another's: weights bit for bit, buffers, what it printed and saved, what it kept alive.

Random draws must not fake a difference: a program that draws one number more would train on other
numbers ever after. So what a draw yields is here a function of its shape and of how many updates
were made before it, and not of the order of all draws. Where much is drawn alike between two
updates (first weights, data), it is also a function of how many such draws there were; but not in
dropout and in a loader's order.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import io
import json
import os
import random
import selectors
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.overrides import TorchFunctionMode
from torch.utils.data import DataLoader

DROPOUT = {
    F.dropout: 2, F.dropout1d: 2, F.dropout2d: 2, F.dropout3d: 2, F.alpha_dropout: 2,
    F.feature_alpha_dropout: 2, F.multi_head_attention_forward: 12,
}  # fmt: skip
"""What drops at random, and which of its arguments is `training`."""
DRAWS = {
    torch.rand, torch.randn, torch.randint, torch.randperm, torch.normal, torch.rand_like,
    torch.randn_like, torch.randint_like, torch.bernoulli, torch.multinomial, Tensor.random_,
    Tensor.normal_, Tensor.uniform_, Tensor.bernoulli_, Tensor.bernoulli,
    F.scaled_dot_product_attention,
}  # fmt: skip


@dataclass
class Outcome:
    """What a run did. The fields hold hashes, to be compared with another run's."""

    crash: str = ""
    """The exception that ended it, or `timeout`."""
    weights: str = ""
    buffers: str = ""
    printed: str = ""
    saved: str = ""
    updates: int = 0
    graphs: int = 0
    """Operations that built a graph."""
    alive: tuple[int, ...] = ()
    """Nodes of autograd graphs that were still held after each update."""
    seconds: float = 0.0


class Keyed(TorchFunctionMode):
    """Random draws as described above."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self.outcome = outcome
        self.drawn: Counter[Any] = Counter()

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in DROPOUT:
            at = DROPOUT[func]
            if kwargs.get("training", args[at] if at < len(args) else True):
                self.seed(func, args, "dropout")
        elif func in DRAWS and kwargs.get("generator") is None:
            # A loader draws its seed as a tensor without dimensions, once a pass.
            of_loader = func is Tensor.random_ and args[0].dim() == 0
            self.seed(func, args, "order" if of_loader else self.number(func, args))
        result = func(*args, **kwargs)
        if isinstance(result, Tensor) and result.grad_fn is not None:
            self.outcome.graphs += 1
        return result

    def number(self, func: Any, args: Any) -> str:
        key = (self.outcome.updates, func.__name__, shapes(args))
        self.drawn[key] += 1
        return str(self.drawn[key])

    def seed(self, func: Any, args: Any, which: str) -> None:
        key = (self.outcome.updates, func.__name__, shapes(args), which)
        torch.default_generator.manual_seed(number_of(key))


def shapes(args: Any) -> str:
    return str([tuple(each.shape) if isinstance(each, Tensor) else each for each in args])


def number_of(key: Any) -> int:
    return int(hashlib.blake2b(repr(key).encode(), digest_size=6).hexdigest(), 16)


def observe(text: str, limit: float) -> Outcome:
    """Run a program in this very process, which is of no use afterwards."""
    outcome = Outcome()
    modules: list[nn.Module] = []
    saved: list[str] = []
    _note_modules(modules)
    _note_saves(saved)
    _no_workers()
    register_optimizer_step_post_hook(lambda by, *_: _note_update(outcome, by))
    torch.manual_seed(0)
    _seed_others(0)
    printed, began = io.StringIO(), time.perf_counter()
    signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, limit)
    code = compile(text, "program.py", "exec")
    try:
        with (
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
            Keyed(outcome),
        ):
            exec(code, {"__name__": "__main__", "__file__": "program.py"})
    except SystemExit:
        pass
    except BaseException as error:
        outcome.crash = _described(error)
    signal.setitimer(signal.ITIMER_REAL, 0)
    outcome.seconds = time.perf_counter() - began
    own = [module._parameters.values() for module in modules]
    outcome.weights = digest(list(values) for values in own)
    outcome.buffers = digest(list(module._buffers.values()) for module in modules)
    outcome.printed = digest(printed.getvalue())
    outcome.saved = digest(saved)
    return outcome


def _too_long(*_: Any) -> None:
    raise TimeoutError


def _described(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "timeout"
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if "program" in f.filename]
    return f"{type(error).__name__} at line {lines[-1] if lines else '?'}: {str(error)[:80]}"


def _note_modules(modules: list[nn.Module]) -> None:
    original = nn.Module.__init__

    def init(self: nn.Module, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        modules.append(self)

    nn.Module.__init__ = init  # type: ignore[method-assign]


def _note_saves(saved: list[str]) -> None:
    original = torch.save

    def save(obj: Any, *args: Any, **kwargs: Any) -> None:
        saved.append(digest(obj))
        original(obj, *args, **kwargs)

    torch.save = save


def _no_workers() -> None:
    original = DataLoader.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        for name in ("num_workers", "persistent_workers", "prefetch_factor", "timeout"):
            kwargs.pop(name, None)
        original(self, *args, **kwargs)

    DataLoader.__init__ = init  # type: ignore[method-assign]


def _note_update(outcome: Outcome, by: torch.optim.Optimizer) -> None:
    """A step without any gradient is none."""
    if all(each.grad is None for group in by.param_groups for each in group["params"]):
        return
    outcome.updates += 1
    _seed_others(outcome.updates)
    if outcome.updates <= 60:
        outcome.alive += (graph_nodes(),)


def _seed_others(number: int) -> None:
    """The generators beside torch's."""
    random.seed(number)
    np.random.seed(number)


def graph_nodes() -> int:
    """Nodes of all autograd graphs that a living tensor leads to."""
    waiting = [
        each.grad_fn
        for each in gc.get_objects()
        if issubclass(type(each), Tensor) and each.grad_fn is not None
    ]
    seen: set[Any] = set()
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting.extend(each for each, _ in node.next_functions)
    return len(seen)


def digest(value: Any) -> str:
    found = hashlib.blake2b(digest_size=12)
    _feed(found, value)
    return found.hexdigest()


def _feed(found: Any, value: Any) -> None:
    if isinstance(value, Tensor):
        value = value.detach().contiguous()
        found.update(str((value.dtype, tuple(value.shape))).encode())
        found.update(value.flatten().view(torch.uint8).numpy().tobytes() if value.numel() else b"")
    elif isinstance(value, nn.Module):
        _feed(found, value.state_dict())
    elif isinstance(value, dict):
        for key, each in value.items():
            found.update(repr(key).encode())
            _feed(found, each)
    elif isinstance(value, (list, tuple)) or hasattr(value, "__next__"):
        for each in value:
            _feed(found, each)
    else:
        found.update(repr(value).encode() if not callable(value) else b"function")


# ------------------------------------------------------------------------------------- processes


def run_all(
    tasks: Sequence[Any], work: Callable[[Any], Any], jobs: int
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """`work(task)` for each task, each in a child of its own; its result must be JSON."""
    gc.collect()
    gc.freeze()  # the children then look through their own objects only
    waiting, chosen = list(reversed(tasks)), selectors.DefaultSelector()
    running = 0
    while waiting or running:
        while waiting and running < jobs:
            task = waiting.pop()
            reader, child = _start(task, work)
            chosen.register(reader, selectors.EVENT_READ, (task, child, io.BytesIO()))
            running += 1
        for key, _ in chosen.select():
            task, child, received = key.data
            piece = os.read(key.fd, 1 << 16)
            received.write(piece)
            if not piece:
                chosen.unregister(key.fd)
                os.close(key.fd)
                os.waitpid(child, 0)
                running -= 1
                yield task, json.loads(received.getvalue() or b'{"lost": "it died"}')


def _start(task: Any, work: Callable[[Any], Any]) -> tuple[int, int]:
    sys.stdout.flush()
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        return reader, child
    os.close(reader)
    try:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            sys.argv = [str(Path(folder) / "program.py")]
            result = work(task)
    except BaseException:
        result = {"lost": traceback.format_exc()}
    with open(writer, "wb") as pipe:
        pipe.write(json.dumps(result).encode())
    os._exit(0)
