import torch

for name, make in {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.1),
}.items():
    for unscale in (True, False):
        w = torch.nn.Parameter(torch.zeros(4))
        optimizer, scaler = make([w]), torch.amp.GradScaler("cpu")
        scaler.scale((w * torch.tensor([0.1, 0.2, 0.3, 0.4])).sum()).backward()
        if unscale:
            scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_([w], 1.0)
        scaler.step(optimizer)
        print(f"{name:5} unscale_={unscale!s:6} one update moves by {w.detach().norm():.2e}")
