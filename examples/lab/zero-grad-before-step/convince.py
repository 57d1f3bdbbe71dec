import torch


def weight_after(make_optimizer, updates, set_to_none):
    w = torch.nn.Parameter(torch.tensor([1.0]))
    optimizer = make_optimizer([w])
    (3 * w).sum().backward()  # one good update first: the optimizer has its state
    optimizer.step()
    start = w.item()
    for _ in range(updates):
        (3 * w).sum().backward()
        optimizer.zero_grad(set_to_none=set_to_none)
        optimizer.step()
    return f"{start:.4f} -> {w.item():.4f}"


optim = torch.optim
for name, make in {
    "SGD": lambda p: optim.SGD(p, lr=0.01),
    "SGD, weight decay 0.1": lambda p: optim.SGD(p, lr=0.01, weight_decay=0.1),
    "SGD, momentum 0.9": lambda p: optim.SGD(p, lr=0.01, momentum=0.9),
    "Adam": lambda p: optim.Adam(p, lr=0.01),
    "AdamW, weight decay 0.1": lambda p: optim.AdamW(p, lr=0.01, weight_decay=0.1),
}.items():
    for none in (True, False):
        print(f"{name:24} set_to_none={none!s:6}", weight_after(make, 100, none))
