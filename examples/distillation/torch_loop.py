"""Distillation by hand: softened logits, the factor T², and a teacher that must not learn."""

import torch
from data import spiral, trained_teacher
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, kl_div, log_softmax
from torch.utils.data import DataLoader, TensorDataset

EPOCHS, TEMPERATURE, ALPHA = 20, 2.0, 0.7

torch.manual_seed(0)
train = DataLoader(TensorDataset(*spiral(300, seed=0)), batch_size=32, shuffle=True)
val = DataLoader(TensorDataset(*spiral(600, seed=1)), batch_size=256)
teacher = trained_teacher()
student = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(student.parameters(), lr=3e-2)


def distillation_loss(logits: Tensor, labels: Tensor, teacher_logits: Tensor) -> Tensor:
    soft = kl_div(
        log_softmax(logits / TEMPERATURE, dim=1),
        log_softmax(teacher_logits / TEMPERATURE, dim=1),
        reduction="batchmean",
        log_target=True,
    )
    return ALPHA * TEMPERATURE**2 * soft + (1 - ALPHA) * cross_entropy(logits, labels)


for _ in range(EPOCHS):
    student.train()
    for inputs, labels in train:
        with torch.no_grad():
            teacher_logits = teacher(inputs)
        optimizer.zero_grad()
        distillation_loss(student(inputs), labels, teacher_logits).backward()
        optimizer.step()
    student.eval()
    right = 0
    with torch.inference_mode():
        for inputs, labels in val:
            right += (student(inputs).argmax(dim=1) == labels).sum().item()

print(f"val_accuracy {right / len(val.dataset):.4f}")
