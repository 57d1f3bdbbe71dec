import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator()
model = nn.Linear(20, 5)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.utils.data.TensorDataset(torch.randn(640, 20), torch.randint(0, 5, (640,)))
batches = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 0.1, epochs=5, steps_per_epoch=len(batches))
model, opt, batches, sched = accelerator.prepare(model, opt, batches, sched)
for epoch in range(5):
    for x, y in batches:
        opt.zero_grad()
        accelerator.backward(nn.functional.cross_entropy(model(x), y))
        opt.step()
    sched.step()  # <- TL603
