"""The file goes into a second wrapper, whose keys have the same prefix."""

import torch

net = torch.nn.DataParallel(torch.nn.Linear(10, 1))
torch.save(net.state_dict(), "m.pt")
new = torch.nn.DataParallel(torch.nn.Linear(10, 1))
new.load_state_dict(torch.load("m.pt"))
