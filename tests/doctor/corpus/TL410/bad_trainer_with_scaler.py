import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, net, lr=1e-3, weight=0.1):
        self.net = net
        self.optimizer = torch.optim.SGD(net.parameters(), lr=lr)
        self.scaler = torch.amp.GradScaler("cpu", enabled=False)
        self.criterion = nn.CrossEntropyLoss()
        self.weight = weight

    def input_penalty(self, loss, inputs):
        grads = torch.autograd.grad(  # <- TL410
            loss, inputs, retain_graph=True, create_graph=False
        )[0]
        return grads.square().sum()

    def fit(self, loader, epochs):
        for _ in range(epochs):
            for inputs, targets in loader:
                self.optimizer.zero_grad(set_to_none=True)
                inputs.requires_grad = True
                loss = self.criterion(self.net(inputs), targets)
                total = loss + self.weight * self.input_penalty(loss, inputs)
                self.scaler.scale(total).backward()
                self.scaler.step(self.optimizer)
                self.scaler.update()


torch.manual_seed(0)
data = TensorDataset(torch.randn(32, 5), torch.randint(0, 3, (32,)))
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 3))
Trainer(net).fit(DataLoader(data, batch_size=8, shuffle=True), epochs=2)
