"""Of a loaded network all is frozen but the last block and the head; the optimizer has the head."""

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def block(inside, outside):
    return nn.Sequential(nn.Linear(inside, outside), nn.ReLU())


class Stack(nn.Module):
    def __init__(self, classes=2):
        super().__init__()
        self.block1, self.block2, self.block3 = block(4, 16), block(16, 16), block(16, 16)
        self.fc = nn.Linear(16, classes)

    def forward(self, x):
        return self.fc(self.block3(self.block2(self.block1(x))))


def published():
    """Weights as years of training have left them."""
    return {name: torch.randn_like(value) ** 3 for name, value in Stack().state_dict().items()}


def finetune(loader, epochs=2):
    net = Stack()
    net.load_state_dict(published())
    net.fc = nn.Linear(16, 3)
    for name, parameter in net.named_parameters():
        parameter.requires_grad = name.startswith(("block3", "fc"))
    optimizer = optim.AdamW(net.fc.parameters(), lr=3e-3)  # <- TL302
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad(set_to_none=True)
            nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
    return net


if __name__ == "__main__":
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(64, 4), torch.randint(0, 3, (64,)))
    finetune(DataLoader(data, batch_size=8, shuffle=True))
