"""Both networks of a GAN and the epoch come back, but only one of the optimizers."""
import os
import tempfile

import torch
from torch import nn


def bce(scores, real):
    return nn.functional.binary_cross_entropy_with_logits(scores, torch.full_like(scores, float(real)))


def run(path, epochs, resume):
    generator, critic = nn.Linear(4, 6), nn.Linear(6, 1)
    first = 0
    state = torch.load(path, weights_only=True) if resume else None
    if state is not None:
        generator.load_state_dict(state["generator"])  # <- TL801
        critic.load_state_dict(state["critic"])
        first = state["epoch"] + 1
    opt_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    opt_d = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
    if state is not None:
        opt_d.load_state_dict(state["opt_d"])
    for epoch in range(first, epochs):
        for _ in range(3):
            real, fake = torch.randn(8, 6), generator(torch.randn(8, 4))
            opt_d.zero_grad()
            (bce(critic(real), 1) + bce(critic(fake.detach()), 0)).backward()
            opt_d.step()
            opt_g.zero_grad()
            bce(critic(fake), 1).backward()
            opt_g.step()
    parts = dict(generator=generator, critic=critic, opt_g=opt_g, opt_d=opt_d)
    torch.save({"epoch": epochs - 1} | {name: part.state_dict() for name, part in parts.items()}, path)


with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "gan.pt")
    run(file, 2, resume=False)
    run(file, 4, resume=True)
