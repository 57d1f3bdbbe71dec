import torch
from torch import nn

torch.manual_seed(0)
layer, x = nn.Linear(16, 64), torch.randn(256, 16)
for size in (1.0, 1e-2, 1e-4):  # the largest difference between output and target
    for scale in (1, 65536):
        layer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            output = layer(x).float()
        target = output.detach() + size * torch.rand(256, 64)
        (scale * nn.functional.mse_loss(output, target)).backward()
        zeros = (layer.weight.grad == 0).float().mean().item()
        print(f"difference up to {size:<6}  scale {scale:<5}  zero gradients {zeros:.0%}")
