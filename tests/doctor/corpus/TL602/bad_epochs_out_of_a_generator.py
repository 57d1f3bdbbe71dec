import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset


def epochs(network, batches, optimizer, then, count):
    for epoch in range(count):
        for x, y in batches:
            optimizer.zero_grad()
            loss = F.cross_entropy(network(x), y)
            loss.backward()
            optimizer.step()
            for act in then:
                act()  # <- TL602
        yield epoch, loss.item()


torch.manual_seed(0)
batches = DataLoader(
    TensorDataset(torch.randn(48, 4), torch.randint(0, 3, (48,))), batch_size=8, shuffle=True
)
network = nn.Linear(4, 3)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
schedule = CosineAnnealingLR(optimizer, T_max=5)
for epoch, loss in epochs(network, batches, optimizer, [schedule.step], 5):
    print(epoch, round(loss, 3))
