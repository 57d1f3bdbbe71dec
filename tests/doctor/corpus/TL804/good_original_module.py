import io

import torch
import torch.nn.functional as F

net = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.ReLU(), torch.nn.Linear(12, 2))
compiled = torch.compile(net, backend="eager")
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
x, y = torch.randn(48, 6), torch.randint(0, 2, (48,))
for step in range(4):
    optimizer.zero_grad()
    loss = F.cross_entropy(compiled(x), y)
    loss.backward()
    optimizer.step()
torch.save({"step": 4, "model": net.state_dict()}, io.BytesIO())
torch.save(compiled._orig_mod.state_dict(), io.BytesIO())
