import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator()
model = nn.Linear(20, 5)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
data = torch.utils.data.TensorDataset(torch.randn(640, 20), torch.randint(0, 5, (640,)))
model, opt, batches = accelerator.prepare(
    model, opt, torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
)
for epoch in range(5):
    for step, (x, y) in enumerate(batches):
        last = (step + 1) % 4 == 0
        if last:
            accelerator.backward(nn.functional.cross_entropy(model(x), y) / 4)
            opt.step()
            opt.zero_grad()
        else:
            with accelerator.no_sync(model):
                accelerator.backward(nn.functional.cross_entropy(model(x), y) / 4)
