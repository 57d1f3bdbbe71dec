import torch


def first_update(leftover, clear_first):
    w = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([w], lr=1.0)
    if leftover:  # a dry run before the loop, say a learning rate finder
        (100 * w).sum().backward()
    if clear_first:
        optimizer.zero_grad()
    w.sum().backward()
    optimizer.step()
    return w.item()


for leftover in (False, True):
    print("a gradient is left over from before the loop:" if leftover else "a fresh model:")
    print(
        "  zero_grad at the start: the first update moves the weight by",
        first_update(leftover, True),
    )
    print(
        "  zero_grad at the end:   the first update moves the weight by",
        first_update(leftover, False),
    )
