import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator(gradient_accumulation_steps=4)
model = nn.Linear(20, 5)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
data = torch.utils.data.TensorDataset(torch.randn(640, 20), torch.randint(0, 5, (640,)))
batches = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
model, opt, batches = accelerator.prepare(model, opt, batches)
for epoch in range(5):
    for x, y in batches:
        with accelerator.accumulate(model):
            accelerator.backward(nn.functional.cross_entropy(model(x), y))
            opt.step()
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)  # <- TL105
            opt.zero_grad()
