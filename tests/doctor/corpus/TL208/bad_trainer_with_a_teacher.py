"""A trainer whose teacher is read from a file and frozen; its dropout stays on."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(7, width)
        self.drop = nn.Dropout(0.3)
        self.out = nn.Linear(width, 2)

    def forward(self, x):
        return self.out(self.drop(torch.relu(self.inner(x))))


class Distiller:
    def __init__(self, student, path):
        self.student = student
        self.teacher = Net(24)
        self.teacher.load_state_dict(torch.load(path, weights_only=True))
        for p in self.teacher.parameters():
            p.requires_grad = False
        self.optimizer = torch.optim.Adam(self.student.parameters(), lr=1e-3)

    def train_step(self, batch):
        (x,) = batch
        wanted = self.teacher(x)  # <- TL208
        loss = nn.functional.mse_loss(self.student(x), wanted)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            self.student.train()
            for batch in loader:
                self.train_step(batch)


torch.manual_seed(0)
torch.save(Net(24).state_dict(), "teacher.pt")
loader = DataLoader(TensorDataset(torch.randn(60, 7)), batch_size=12, shuffle=True)
Distiller(Net(6), "teacher.pt").fit(loader, epochs=2)
