import torch

for make in (torch.optim.SGD, torch.optim.Adam):
    for divisor in (4, 1):
        weight = torch.nn.Parameter(torch.tensor([1.0]))
        optimizer = make([weight], lr=0.01)
        for _micro_batch in range(4):
            ((weight - 3) ** 2 / divisor).sum().backward()
        optimizer.step()
        print(f"{make.__name__}, divided by {divisor}: moved by {weight.item() - 1:.4f}")
