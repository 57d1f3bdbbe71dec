"""What the second wrapper gets is a different file."""

import torch

PREFIX = "module" + "."

source = torch.nn.DataParallel(torch.nn.Linear(10, 1))
torch.save({PREFIX + k: v for k, v in source.module.state_dict().items()}, "pretrained.pt")
net = torch.nn.DataParallel(torch.nn.Linear(10, 1))
torch.save(net.state_dict(), "m.pt")  # <- TL804
other = torch.nn.DataParallel(torch.nn.Linear(10, 1))
other.load_state_dict(torch.load("pretrained.pt"))
