import torch

for clears in (True, False):
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    for epoch in range(2):
        if clears:
            optimizer.zero_grad()
        for index in range(1, 7):  # six batches, four to an update
            (weight * 1.0).sum().backward()  # a gradient of 1
            if index % 4 == 0:
                print(f"cleared: {clears}, epoch {epoch}: batches in it: {weight.grad.item():.0f}")
                optimizer.step()
                optimizer.zero_grad()
