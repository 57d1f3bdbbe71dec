"""Each job has half of the rounds; the cosine is made for the windows of all of them."""

import os
import tempfile

import torch
from torch import nn

ROUNDS, PER_JOB, WINDOW, SIZE = 8, 4, 2, 12


def job(path, inputs, wanted):
    net = nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 1))
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    windows = len(inputs) // SIZE // WINDOW
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=ROUNDS * windows)
    begin = 0
    if os.path.exists(path):
        state = torch.load(path)
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        cosine.load_state_dict(state["cosine"])
        begin = state["rounds"]
    for number in range(begin, min(begin + PER_JOB, ROUNDS)):
        for at, rows in enumerate(torch.randperm(len(inputs)).split(SIZE)):
            loss = nn.functional.mse_loss(net(inputs[rows]), wanted[rows])
            (loss / WINDOW).backward()
            if (at + 1) % WINDOW == 0:
                optimizer.step()
                cosine.step()
                optimizer.zero_grad()
        print(number, round(loss.item(), 4), cosine.get_last_lr()[0])
    torch.save(
        {
            "net": net.state_dict(),
            "optimizer": optimizer.state_dict(),
            "cosine": cosine.state_dict(),
            "rounds": number + 1,
        },
        path,
    )


torch.manual_seed(4)
inputs = torch.randn(240, 6)
job(os.path.join(tempfile.mkdtemp(), "last.pt"), inputs, inputs[:, :1].sin())
