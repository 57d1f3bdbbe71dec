"""Distillation and mixup: probabilities are the target, logits the input."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)

NUM_CLASSES, TEMPERATURE = 4, 2.0

x = torch.randn(256, 10)
y = (x[:, 0] > 0).long() * 2 + (x[:, 1] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)

teacher = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, NUM_CLASSES)).eval()
for parameter in teacher.parameters():
    parameter.requires_grad_(False)

student = nn.Linear(10, NUM_CLASSES)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
soft_criterion = nn.CrossEntropyLoss()

for epoch in range(3):
    for inputs, labels in loader:
        lam = float(torch.distributions.Beta(0.4, 0.4).sample())
        order = torch.randperm(inputs.size(0))
        mixed = lam * inputs + (1 - lam) * inputs[order]
        one_hot = F.one_hot(labels, NUM_CLASSES).float()
        mixed_targets = lam * one_hot + (1 - lam) * one_hot[order]

        with torch.no_grad():
            teacher_probs = F.softmax(teacher(mixed) / TEMPERATURE, dim=1)

        logits = student(mixed)
        mixup_loss = soft_criterion(logits, mixed_targets)
        distill_loss = F.cross_entropy(logits / TEMPERATURE, teacher_probs)
        loss = mixup_loss + TEMPERATURE**2 * distill_loss

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
