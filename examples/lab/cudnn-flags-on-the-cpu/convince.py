"""A convolution and its gradient on the CPU, under each setting of the two flags."""

import torch

for deterministic in (False, True):
    for benchmark in (False, True):
        torch.backends.cudnn.deterministic = deterministic
        torch.backends.cudnn.benchmark = benchmark
        torch.manual_seed(0)
        layer = torch.nn.Conv2d(3, 8, 3)
        layer(torch.randn(4, 3, 16, 16)).square().mean().backward()
        total = layer.weight.grad.double().sum().item()
        print(f"deterministic={deterministic!s:5} benchmark={benchmark!s:5} gradient sum {total!r}")
