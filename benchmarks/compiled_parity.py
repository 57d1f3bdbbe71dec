"""What `compile="step"` trains beside the plain step: every combination, as it is compiled.

    python benchmarks/compiled_parity.py [--every 5]

For each optimizer, clip, accumulation and precision (the schedules in turn) two steps train the
same batches for 200 updates. In float64 the weights must agree to 1e-10, relative to the largest
of their tensor. In float32 (beside float64), bf16 and fp16 (beside float32) the compiled weights
may be twice as far from the exact ones as the plain step's are, and 1e-6 more. A case is compiled
in 10 to 20 seconds; `--every 5` takes every fifth. The result file is written after each case.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import time
from collections.abc import Callable
from typing import Any

import torch
from common import save_results
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer

import trueloop
from trueloop import schedules

UPDATES = 200
OPTIMIZERS: dict[str, Callable[[nn.Module], Optimizer]] = {
    "adam": lambda m: Adam(m.parameters(), lr=0.01, weight_decay=0.01),
    "adam, amsgrad": lambda m: Adam(m.parameters(), lr=0.01, amsgrad=True),
    "adamw": lambda m: AdamW(m.parameters(), lr=0.01, fused=True),
    "adamw, groups": lambda m: AdamW(trueloop.optimizers.parameter_groups(m, 0.1), lr=0.01),
    "sgd": lambda m: SGD(m.parameters(), lr=0.05, weight_decay=0.01),
    "sgd, momentum": lambda m: SGD(m.parameters(), lr=0.02, momentum=0.9, dampening=0.1),
    "sgd, nesterov": lambda m: SGD(m.parameters(), lr=0.02, momentum=0.9, nesterov=True),
}
CLIPS: dict[str, dict[str, float]] = {
    "none": {},
    "norm": {"clip_norm": 0.5},
    "value": {"clip_value": 0.01},
}
SCHEDULES: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "cosine": schedules.cosine,
    "warmup_cosine": lambda: schedules.warmup_cosine(warmup="10%"),
    "one_cycle": schedules.one_cycle,
    "step_decay": schedules.step_decay,
    "plateau": lambda: schedules.plateau(monitor="val_loss", patience=0),
    "cosine by epoch": lambda: schedules.cosine(tick="epoch"),
    "warmup_stable_decay": schedules.warmup_stable_decay,
}
PRECISIONS = ("float64", "fp32", "bf16", "fp16")
EPOCHS = 4


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(6, 16, bias=False), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 3)
    )


def batches(number: int) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(1)
    return [
        (
            torch.randn(16, 6, generator=generator),
            torch.randint(0, 3, (16,), generator=generator),
        )
        for _ in range(number)
    ]


def trained(case: dict[str, Any], precision: str, compile: str | None) -> trueloop.Step:
    model = make_model()
    dtype = torch.float64 if precision == "float64" else torch.float32
    model = model.to(dtype)
    step = trueloop.Step(
        model,
        OPTIMIZERS[case["optimizer"]](model),
        trueloop.supervised(nn.CrossEntropyLoss()),
        schedule=SCHEDULES[case["schedule"]](),
        precision="fp32" if precision == "float64" else precision,
        accumulate=case["accumulate"],
        compile=compile,
        **CLIPS[case["clip"]],
    )
    given = batches(UPDATES // EPOCHS * case["accumulate"])
    step.plan(epochs=EPOCHS, batches=len(given))
    for epoch in range(EPOCHS):
        for x, y in given:
            step((x.to(dtype), y))
        step.end_epoch({"val_loss": 1.0 + epoch})
    return step


def difference(a: trueloop.Step, b: trueloop.Step) -> float:
    """The largest difference of two models' tensors, relative to the largest entry of each."""
    found = 0.0
    for p, q in zip(a.model.state_dict().values(), b.model.state_dict().values(), strict=True):
        p, q = p.double(), q.double()
        found = max(found, float((p - q).abs().max() / q.abs().max().clamp_min(1e-30)))
    return found


def judged(case: dict[str, Any]) -> dict[str, Any]:
    precision = case["precision"]
    started = time.perf_counter()
    compiled = trained(case, precision, "step")
    seconds = round(time.perf_counter() - started, 1)
    assert compiled._compiled is not None
    found = {**case, "level": compiled._compiled.level, "seconds": seconds}
    plain = trained(case, precision, None)
    found["compiled - plain"] = difference(compiled, plain)
    if precision == "float64":
        found["bound"] = 1e-10
        found["held"] = found["compiled - plain"] <= found["bound"]
    else:
        exact = trained(case, "float64" if precision == "fp32" else "fp32", None)
        found["compiled - exact"] = difference(compiled, exact)
        found["bound"] = 2 * difference(plain, exact) + 1e-6
        found["held"] = found["compiled - exact"] <= found["bound"]
    found["held"] &= compiled.updates == plain.updates and found["level"] == "update"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="take every n-th case")
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no case after so many")
    options = parser.parse_args()
    torch.set_num_threads(1)
    names = itertools.cycle(SCHEDULES)
    cases = [
        dict(zip(("precision", "optimizer", "clip", "accumulate"), each, strict=True))
        | {"schedule": next(names)}
        for each in itertools.product(PRECISIONS, OPTIMIZERS, CLIPS, (1, 3))
    ]
    started, found = time.perf_counter(), list[dict[str, Any]]()
    for case in copy.deepcopy(cases)[:: options.every]:
        if time.perf_counter() - started > options.minutes * 60:
            break
        found.append(judged(case))
        print(found[-1], flush=True)
        torch._dynamo.reset()
        held = sum(each["held"] for each in found)
        results = {"of": len(cases), "compared": len(found), "held": held, "cases": found}
        save_results("compiled_parity", results)


if __name__ == "__main__":
    main()
