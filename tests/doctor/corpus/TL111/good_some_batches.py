"""At most so many batches: the return stands under a condition, or turns are passed over."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(40, 3), torch.randn(40, 1)), batch_size=4
)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def train_some(limit):
    total, count = 0.0, 0
    for x, y in loader:
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        opt.step()
        total += loss.item()
        count += 1
        if count == limit:
            return total / count
    return total / count


def first_hard_batch():
    seen = 0
    for x, y in loader:
        seen += 1
        if nn.functional.mse_loss(net(x), y).item() < 0.5:
            continue
        return seen, x


print(train_some(5), first_hard_batch() is None)
