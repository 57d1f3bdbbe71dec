import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(48, 4), torch.randn(48, 1)),
    batch_size=8,
    shuffle=True,
)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def train_one_epoch():
    total = 0.0
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss.item()
        return total / len(loader)  # <- TL111


for epoch in range(3):
    print(epoch, train_one_epoch())
