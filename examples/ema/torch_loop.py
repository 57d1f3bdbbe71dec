"""An exponential moving average of the weights by hand: updated after each step, evaluated in place
of the model, and what is left at the end."""

import torch
from data import checkerboard
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS, DECAY = 15, 0.98

torch.manual_seed(0)
train = DataLoader(
    TensorDataset(*checkerboard(512, seed=0, flipped=0.15)), batch_size=32, shuffle=True
)
val = DataLoader(TensorDataset(*checkerboard(512, seed=1)), batch_size=256)
model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(DECAY), use_buffers=True)

for _ in range(EPOCHS):
    model.train()
    for inputs, labels in train:
        optimizer.zero_grad()
        criterion(model(inputs), labels).backward()
        optimizer.step()
        average.update_parameters(model)
    average.eval()
    total, right = 0.0, 0
    with torch.inference_mode():
        for inputs, labels in val:
            logits = average(inputs)
            total += criterion(logits, labels).item() * len(labels)
            right += (logits.argmax(dim=1) == labels).sum().item()

model.load_state_dict(average.module.state_dict())
samples = len(val.dataset)
print(f"val_loss {total / samples:.4f}  val_accuracy {right / samples:.4f}")
