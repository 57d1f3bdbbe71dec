"""Knowledge distillation with a module of its own."""

import torch
from torch import nn
from torch.utils import data


class DistillationLoss(nn.Module):
    def __init__(self, temperature=2.0, weight=0.5):
        super().__init__()
        self.temperature = temperature
        self.weight = weight
        self.ce = nn.CrossEntropyLoss()
        self.kl = nn.KLDivLoss()
        self.log_softmax = nn.LogSoftmax(dim=1)
        self.softmax = nn.Softmax(dim=1)

    def forward(self, student_logits, teacher_logits, target):
        soft = self.log_softmax(student_logits / self.temperature)
        hard = self.softmax(teacher_logits / self.temperature)
        divergence = self.kl(soft, hard)  # <- TL405
        return self.weight * self.ce(student_logits, target) + divergence


def make_net(width):
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 5))


def train(student, teacher, loader, epochs=2):
    criterion = DistillationLoss()
    optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)
    teacher.eval()
    for epoch in range(epochs):
        student.train()
        for features, target in loader:
            with torch.no_grad():
                guide = teacher(features)
            loss = criterion(student(features), guide, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(2)
    torch.set_num_threads(1)
    features = torch.randn(128, 8)
    target = features[:, :5].argmax(dim=1)
    loader = data.DataLoader(data.TensorDataset(features, target), batch_size=32, shuffle=True)
    train(make_net(8), make_net(64), loader)
