import torch
from torch import nn

torch.manual_seed(0)
rnn, head = nn.GRU(4, 8, batch_first=True), nn.Linear(8, 2)
parameters = [*rnn.parameters(), *head.parameters()]
optimizer = torch.optim.RMSprop(parameters, lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
for x in torch.randn(5, 6, 7, 4):
    hidden, _ = rnn(x)
    loss = nn.functional.cross_entropy(head(hidden[:, -1]), x[:, 0, :2].argmax(1))
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    for p in rnn.parameters():
        p.grad.data.clamp_(-0.1, 0.1)  # <- TL501
    scaler.step(optimizer)
    scaler.update()
print(loss.item())
