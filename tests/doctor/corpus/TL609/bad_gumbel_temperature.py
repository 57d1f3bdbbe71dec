import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS, STARTING_TEMP, TEMP_MIN, ANNEAL_RATE = 3, 1.0, 0.5, 1e-4
torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(32, 6)), batch_size=8, shuffle=True)
encoder, decoder = nn.Linear(6, 4), nn.Linear(4, 6)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
global_step = 0
temp = STARTING_TEMP

for epoch in range(EPOCHS):
    for i, (x,) in enumerate(loader):
        code = nn.functional.gumbel_softmax(encoder(x), tau=temp)
        loss = nn.functional.mse_loss(decoder(code), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 2 == 0:
            temp = max(temp * math.exp(-ANNEAL_RATE * global_step), TEMP_MIN)  # <- TL609
        global_step += 1
