"""Times forward passes under inference_mode(), against the same passes under no_grad().

Three networks: large matrices, small matrices, and tiny operations that are mostly views. The two
modes take turns; a speed-up is the median over the rounds.
"""

import json
import sys
import time

import torch
from torch import nn

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

ROUNDS = 101


class Views(nn.Module):
    def forward(self, x):
        for _ in range(16):
            x = x.view(4, 4).t().unsqueeze(0).squeeze(0).reshape(1, 16)
        return x


def stack(width, depth):
    return nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(depth)])


def seconds(mode, model, x, passes):
    started = time.perf_counter()
    with mode():
        for _ in range(passes):
            model(x)
    return (time.perf_counter() - started) / passes


def median(numbers):
    return sorted(numbers)[len(numbers) // 2]


settings = {
    "large": (stack(512, 3), torch.randn(32, 512), 1),
    "small": (stack(16, 8), torch.randn(1, 16), 10),
    "views": (Views(), torch.randn(1, 16), 10),
}
result = {}

for name, (model, x, passes) in settings.items():
    reference = []
    measured = []
    for _ in range(ROUNDS):
        reference.append(seconds(torch.no_grad, model, x, passes))
        measured.append(seconds(torch.inference_mode, model, x, passes))
    rounds = [r / m for r, m in zip(reference, measured, strict=True)]
    result[f"{name}_seconds"] = median(measured)
    result[f"{name}_speedup"] = median(rounds)
    result[f"{name}_rounds"] = rounds

print(json.dumps(result))
