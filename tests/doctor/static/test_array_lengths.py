"""The lengths of NumPy arrays that constants decide, each against that of the array itself."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from trueloop.doctor.static import check_text

PROGRAM = """
import math
import random
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(0)
old = np.random.RandomState(0)
n = 240


def make(n):
    return {array}


data = TensorDataset(torch.from_numpy(make(n)))
loader = DataLoader(data, batch_size={size})
net, total = nn.Linear(4, 3), 0.0
with torch.no_grad():
    for (x,) in loader:
        total += nn.functional.mse_loss(net(x), x[:, :3]).item()
print(total / len(loader))
"""
KNOWN = [
    "np.random.randn(n, 4)",
    "np.random.rand(n, 4)",
    "np.random.random((n, 4))",
    "np.random.random_sample(size=(n, 4))",
    "np.random.normal(0, 1, (n, 4))",
    "np.random.normal(size=(n, 4))",
    "np.random.uniform(-1, 1, size=(n, 4))",
    "np.random.randint(0, 9, n)",
    "np.random.randint(9, size=n)",
    "np.random.choice(5, n)",
    "np.random.permutation(n)",
    "np.random.permutation(np.zeros((n, 4)))",
    "rng.standard_normal((n, 4))",
    "rng.normal(1.0, 2.0, size=(n, 4)).astype(np.float32)",
    "rng.integers(0, 5, n)",
    "rng.random(n)",
    "rng.poisson(3, n)",
    "old.randn(n, 4)",
    "old.randint(0, 4, size=(n,))",
    "np.zeros((n, 4))",
    "np.ones(n)",
    "np.full((n, 4), 2.0)",
    "np.eye(n)",
    "np.eye(n, 4)",
    "np.identity(n)",
    "np.linspace(0, 1, n)",
    "np.linspace(0, 1)",
    "np.linspace(0, 1, num=n)",
    "np.arange(n)",
    "np.arange(0, n, 2)",
    "np.arange(n).astype(np.float32) / n",
    "np.arange(n).reshape(-1, 4)",
    "np.arange(n).reshape(60, 4)",
    "np.arange(n)[:, None]",
    "np.arange(n)[:100]",
    "np.arange(n)[::3]",
    "np.arange(n)[-20:]",
    "np.zeros((4, n)).T",
    "np.zeros((4, n)).transpose()",
    "np.zeros((4, n)).transpose(1, 0)",
    "np.zeros((n, 4)).sum(axis=1)",
    "np.zeros((4, n)).mean(0)",
    "np.sum(np.zeros((4, n)), axis=0)",
    "np.sin(np.linspace(0, 9, n)) + 0.1 * rng.normal(size=n)",
    "(rng.normal(size=(n, 4)).sum(1) > 0).astype(np.int64)",
    "np.where(rng.random(n) > 0.5, 1.0, -1.0)",
    "np.stack([np.zeros(n), np.ones(n)], axis=1)",
    "np.stack([np.zeros(4), np.ones(4)])",
    "np.concatenate([np.zeros((n, 4)), np.ones((60, 4))])",
    "np.concatenate([np.zeros((n, 2)), np.ones((n, 2))], axis=1)",
    "np.expand_dims(np.zeros(n), 1)",
    "np.zeros_like(np.zeros((n, 4)))",
    "np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])",
    "np.array([[float(i), 1.0] for i in range(n)])",
    "np.clip(rng.normal(size=(n, 4)), -1, 1)",
    "np.squeeze(np.zeros((n, 1)))",
    "np.flip(np.zeros((n, 4)), 0)",
    "np.zeros((n, 4)) @ np.zeros((4, 3))",
    "np.zeros((n, 4)).dot(np.zeros((4, 3)))",
    "np.array([math.sin(i) + random.random() for i in range(n)])",
]


UNKNOWN = [
    "np.arange(n)[np.arange(n) > 9]",
    "np.arange(n)[~(np.arange(n) % 3 == 0)]",
    "np.arange(n)[np.where(np.arange(n) > 9)]",
    "np.arange(n)[np.where(np.arange(n) > 9)[0]]",
    "np.where(np.arange(n) > 9)[0]",
    "np.arange(n)[np.isin(np.arange(n), [1, 2, 3, 4])]",
    "np.arange(n)[np.logical_and(np.arange(n) > 9, np.arange(n) < 90)]",
    "np.arange(n)[np.nonzero(np.arange(n) > 9)[0]]",
    "np.arange(n)[rng.integers(0, 2, n).astype(bool)]",
    "np.concatenate([rng.random(i) for i in range(9)])",
    "np.arange(n)[np.arange(n)[:80]]",
    "np.zeros((n, 4, 2)).max(axis=(1, 2))",
    "np.vstack([np.zeros((n, 4)), np.ones((60, 4))])",
    "np.tile(np.zeros(4), (n, 1))",
    "np.repeat(np.zeros((60, 4)), 4, axis=0)",
    "np.repeat(np.zeros(60), 2)",
    "np.array([i + j for i, j in zip(np.arange(n), np.arange(n))])",
    "np.delete(np.zeros(n), 3)",
    "np.unique(np.random.randint(0, 9, n))",
    "np.outer(np.zeros(n), np.ones(4))",
    "np.zeros((n, 4)).view(np.int64)",
    "np.zeros((n, 4)).repeat(2, axis=0)",
]


def severities(array: str, size: int) -> list[str]:
    checked = check_text(PROGRAM.format(array=array, size=size), "train.py")
    return [str(each.severity) for each in checked.findings if each.code == "TL709"]


@pytest.mark.parametrize("array", KNOWN + UNKNOWN)
def test_length_is_that_of_the_array_or_unknown(array: str) -> None:
    names = {"np": np, "random": random, "math": math, "n": 240}
    generators = {"rng": np.random.default_rng(0), "old": np.random.RandomState(0)}
    length = len(eval(array, names | generators))
    even = next(size for size in range(2, length + 1) if length % size == 0)
    uneven = next((size for size in range(2, length) if length % size), 0)
    assert "warning" not in severities(array, even)
    assert not uneven or severities(array, uneven) == ["warning" if array in KNOWN else "advice"]
