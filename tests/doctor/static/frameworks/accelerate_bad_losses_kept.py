import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator()
model = nn.Linear(20, 5)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.utils.data.TensorDataset(torch.randn(640, 20), torch.randint(0, 5, (640,)))
model, opt, batches = accelerator.prepare(
    model, opt, torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
)
history = []
for epoch in range(5):
    for x, y in batches:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        opt.step()
        history.append(loss)  # <- TL204
