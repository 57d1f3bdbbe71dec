"""The policy learns from the first turns of a rollout alone, if an option says so: later ones run
without gradients."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--learn-until", type=int)
args = parser.parse_args([])


class World(nn.Module):
    def __init__(self):
        super().__init__()
        self.move, self.gain = nn.Linear(6, 4), nn.Linear(4, 1)

    def forward(self, place, action):
        return torch.tanh(self.move(torch.cat([place, action], dim=1)))


torch.manual_seed(0)
world = World()
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
world_steps = torch.optim.Adam(world.parameters(), lr=1e-3)
policy_steps = torch.optim.Adam(policy.parameters(), lr=1e-3)
for update in range(20):
    place = torch.randn(8, 4)
    gains = []
    for turn in range(5):
        if args.learn_until is not None and turn >= args.learn_until:
            with torch.no_grad():
                action = policy(place.detach())
        else:
            action = policy(place.detach())
        place = world(place, action)
        gains.append(world.gain(place))
    loss = -torch.cat(gains).mean() + place.square().mean()
    world_steps.zero_grad()
    policy_steps.zero_grad()
    loss.backward()
    world_steps.step()
    policy_steps.step()
