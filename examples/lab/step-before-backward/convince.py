import torch
from torch import nn


def gradient(layers, step, fused):
    """The other order, with zero_grad between step and backward: an old gradient is there."""
    torch.manual_seed(0)
    x, y = torch.randn(64, 2), torch.randn(64, 1)
    model = nn.Sequential(*layers())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=fused)
    nn.functional.mse_loss(model(x), y).backward()
    loss = nn.functional.mse_loss(model(x), y)
    if step:
        optimizer.step()
    optimizer.zero_grad()
    try:
        loss.backward()
    except RuntimeError as error:
        return f"RuntimeError: {str(error).split(':')[0]}"
    return [round(value, 4) for value in model[0].weight.grad[0].tolist()]


one = lambda: [nn.Linear(2, 1)]  # noqa: E731
two = lambda: [nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)]  # noqa: E731
for name, layers in {"one layer": one, "two layers": two}.items():
    print(f"{name}, gradient without a step before:", gradient(layers, step=False, fused=False))
    print(f"{name}, after a step:                  ", gradient(layers, step=True, fused=False))
    print(f"{name}, after a fused step:            ", gradient(layers, step=True, fused=True))
