import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator()
model = accelerator.prepare_model(nn.Linear(20, 5))
opt = accelerator.prepare_optimizer(torch.optim.AdamW(model.parameters(), lr=1e-3))
data = torch.utils.data.TensorDataset(torch.randn(640, 20), torch.randint(0, 5, (640,)))
batches = accelerator.prepare_data_loader(
    torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
)
for epoch in range(5):
    for x, y in batches:
        with accelerator.autocast():
            loss = nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        if accelerator.optimizer_step_was_skipped:
            accelerator.print("skipped")
        opt.step()
        opt.zero_grad()
