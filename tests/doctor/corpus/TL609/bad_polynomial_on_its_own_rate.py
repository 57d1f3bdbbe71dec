import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Segmenter:
    def __init__(self, net, max_iter):
        self.net, self.max_iter = net, max_iter
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    def poly(self, current, power=0.9):
        for group in self.optimizer.param_groups:
            group["lr"] *= (1 - current / self.max_iter) ** power  # <- TL609

    def fit(self, loader, epochs):
        current = 0
        for _ in range(epochs):
            for image, mask in loader:
                self.optimizer.zero_grad()
                loss = nn.functional.cross_entropy(self.net(image), mask)
                loss.backward()
                self.optimizer.step()
                self.poly(current)
                current += 1


torch.manual_seed(0)
data = TensorDataset(torch.randn(12, 3, 4, 4), torch.randint(0, 2, (12, 4, 4)))
Segmenter(nn.Conv2d(3, 2, 1), max_iter=12).fit(DataLoader(data, 3, shuffle=True), epochs=3)
