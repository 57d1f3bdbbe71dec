"""Published weights say how long they were trained; the new run counts from zero."""
import os
import tempfile

import torch
from torch import nn

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "published.pt")
    torch.save({"weights": nn.Linear(5, 2).state_dict(), "updates": 90000}, path)
    net = nn.Linear(5, 2)
    published = torch.load(path, weights_only=True)
    net.load_state_dict(published["weights"])
    print(f"trained for {published['updates']} updates")
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
    updates = 0
    while updates < 5:
        x = torch.randn(8, 5)
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), (x[:, 0] > 0).long()).backward()
        optimizer.step()
        updates += 1
    print(f"fine-tuned for {updates} updates")
