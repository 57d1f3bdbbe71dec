import torch
from torch import nn


def lipschitz(model, x, target=1.0):
    x = x.clone().requires_grad_()
    out = model(x)
    slope = torch.autograd.grad(out, x, torch.ones_like(out), True)[0]  # <- TL410
    return torch.relu(slope.flatten(1).norm(dim=1) - 1.0).mean()


def main(window=2):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 12), nn.Softplus(), nn.Linear(12, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.randn(32, 3), torch.randn(32, 1)),
        batch_size=4,
        shuffle=True,
    )
    for i, (x, y) in enumerate(loader):
        fit = nn.functional.smooth_l1_loss(model(x), y)
        penalty = lipschitz(model, x)
        loss = (fit + 0.3 * penalty) / window
        loss.backward()
        if (i + 1) % window == 0:
            optimizer.step()
            optimizer.zero_grad()


main()
