import torch

for bad in (1e6, float("inf"), float("nan")):
    p = torch.nn.Parameter(torch.zeros(3))
    p.grad = torch.tensor([0.1, 0.2, bad])
    norm = torch.nn.utils.clip_grad_norm_([p], 1.0)
    print(f"one gradient of {bad}: norm {norm.item()}, clipped to {p.grad.tolist()}")
