"""What torch.manual_seed governs: three draws from each source, twice from seed 0, once from 1."""

import random

import numpy as np
import torch

sources = {
    "torch": lambda: torch.randint(10**6, (3,)).tolist(),
    "torch.Generator()": lambda: torch.randint(10**6, (3,), generator=torch.Generator()).tolist(),
    "random": lambda: [random.randrange(10**6) for _ in range(3)],
    "numpy": lambda: np.random.randint(10**6, size=3).tolist(),
}
for name, draw in sources.items():
    drawn = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        drawn.append(draw())
    first, again, other = drawn
    print(f"{name:18} same seed, same draws: {first == again!s:6}", end="")
    print(f"other seed, other draws: {first != other}")
