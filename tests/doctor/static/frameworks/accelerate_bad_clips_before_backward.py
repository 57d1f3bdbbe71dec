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
    for x, y in batches:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)  # <- TL104
        accelerator.backward(loss)
        opt.step()
