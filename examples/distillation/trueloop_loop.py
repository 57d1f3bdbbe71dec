"""The same with DistillationLoss: the loss is a line, and the student's scores are named."""

import torch
from data import spiral, trained_teacher
from torch import Tensor, nn

import trueloop

EPOCHS, TEMPERATURE, ALPHA = 20, 2.0, 0.7

torch.manual_seed(0)
train = trueloop.Feed(spiral(300, seed=0), 32, shuffle=True)
val = trueloop.Feed(spiral(600, seed=1), 256)
teacher = trained_teacher()
student = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(student.parameters(), lr=3e-2)
criterion = trueloop.losses.DistillationLoss(temperature=TEMPERATURE, alpha=ALPHA)
accuracy = trueloop.metrics.for_task("multiclass", classes=3)


def distillation_loss(student: nn.Module, batch: tuple[Tensor, Tensor]) -> trueloop.LossOutput:
    inputs, labels = batch
    with torch.no_grad():
        teacher_logits = teacher(inputs)
    logits = student(inputs)
    loss = criterion(logits, (labels, teacher_logits))
    return trueloop.LossOutput(loss, outputs=logits, targets=labels)


step = trueloop.Step(student, optimizer, distillation_loss)
history = trueloop.fit(step, train, val, epochs=EPOCHS, metrics=accuracy)

print(f"val_accuracy {history.records[-1].scores['val_accuracy']:.4f}")
