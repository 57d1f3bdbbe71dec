import torch


def weights(momentum, clear):
    torch.manual_seed(0)
    x, y = torch.randn(64, 4), torch.randn(64, 1)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=momentum)
    for _ in range(100):
        if clear:
            optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    return model.weight


plain, undamped = weights(momentum=0.0, clear=False), weights(momentum=1.0, clear=True)
print("SGD without zero_grad:     ", plain.tolist()[0])
print("SGD(momentum=1.0), cleared:", undamped.tolist()[0])
print("bit for bit the same:      ", torch.equal(plain, undamped))
