import copy

import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator(gradient_accumulation_steps=2)
frozen = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16))
frozen.requires_grad_(False)
frozen.eval()
head = nn.Linear(16, 3)
average = copy.deepcopy(head).requires_grad_(False)
opt = torch.optim.SGD(head.parameters(), lr=0.1, momentum=0.9)
data = torch.utils.data.TensorDataset(torch.randn(320, 8), torch.randint(0, 3, (320,)))
head, opt, batches = accelerator.prepare(
    head, opt, torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
)
for epoch in range(5):
    for x, y in batches:
        with accelerator.accumulate(head):
            with torch.no_grad():
                features = frozen(x)
            loss = nn.functional.cross_entropy(head(features), y)
            accelerator.backward(loss)
            opt.step()
            opt.zero_grad()
        if accelerator.sync_gradients:
            with torch.no_grad():
                for kept, now in zip(average.parameters(), head.parameters()):
                    kept.lerp_(now, 0.01)
