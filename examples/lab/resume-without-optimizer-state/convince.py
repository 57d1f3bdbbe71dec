"""How far the next update moves a trained weight, with and without the optimizer's state."""

import torch

for kind, options in (("SGD", {}), ("SGD", {"momentum": 0.9}), ("Adam", {})):
    moved = []
    for load in (True, False):
        weight = torch.nn.Parameter(torch.tensor(1.0))
        optimizer = getattr(torch.optim, kind)([weight], lr=0.1, **options)
        for gradient in [1.0] * 50 + [0.001] * 50:  # training goes well: the gradient fades
            weight.grad = torch.tensor(gradient)
            optimizer.step()
        resumed = getattr(torch.optim, kind)([weight], lr=0.1, **options)
        if load:
            resumed.load_state_dict(optimizer.state_dict())
        before = weight.item()
        resumed.step()
        moved.append(abs(weight.item() - before))
    print(f"{kind:4} {options}: {moved[0]:.5f} with its state, {moved[1]:.5f} without")
