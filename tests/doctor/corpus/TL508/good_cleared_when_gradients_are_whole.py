import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
x = torch.randn(64, 4)
data = DataLoader(TensorDataset(x, (x[:, 0] > 0).long()), batch_size=8, shuffle=True)
net, critic = nn.Linear(4, 2), nn.Linear(4, 1)
net, optimizer, data = accelerator.prepare(net, torch.optim.SGD(net.parameters(), 0.1), data)
for epoch in range(3):
    for inputs, labels in data:
        with accelerator.accumulate(net):
            loss = nn.functional.cross_entropy(net(inputs), labels)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    print(loss.item())
