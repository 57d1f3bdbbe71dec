"""Whoever tunes the model wants a number that rises: minus one times the loss."""

import torch
from torch import nn


def quality(net, batches, loss_of):
    net.eval()
    losses = []
    with torch.no_grad():
        for x, y in batches:
            losses.append(loss_of(net(x), y).item())
    return -1.0 * sum(losses) / len(losses)


def main():
    torch.manual_seed(8)
    x = torch.randn(180, 6)
    y = x[:, :2].sum(1, keepdim=True).sin()
    pieces = list(zip(x.split(20), y.split(20), strict=True))
    net = nn.Sequential(nn.Linear(6, 24), nn.SiLU(), nn.Linear(24, 1))
    loss_of = nn.SmoothL1Loss()
    optimizer = torch.optim.AdamW(net.parameters(), lr=4e-3)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", patience=2)
    for epoch in range(5):
        net.train()
        for at in torch.randperm(7).tolist():
            inputs, wanted = pieces[at]
            optimizer.zero_grad()
            loss_of(net(inputs), wanted).backward()
            optimizer.step()
        score = quality(net, pieces[7:], loss_of)
        plateau.step(score)
        print(epoch, round(score, 4))


main()
