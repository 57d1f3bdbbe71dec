import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator(gradient_accumulation_steps=8)
model = nn.Linear(20, 5)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
data = torch.utils.data.TensorDataset(torch.randn(640, 20), torch.randint(0, 5, (640,)))
batches = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
sched = torch.optim.lr_scheduler.LinearLR(opt, 0.1, 1.0, total_iters=25)
model, opt, batches, sched = accelerator.prepare(model, opt, batches, sched)
for epoch in range(5):
    for x, y in batches:
        with accelerator.accumulate(model):
            accelerator.backward(nn.functional.cross_entropy(model(x), y))
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            opt.zero_grad()
