import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)

x = torch.randn(192, 12)
y = x[:, :3].argmax(dim=1)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)

teacher = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3)).eval()
student = nn.Linear(12, 3)
T, alpha = 4.0, 0.7

optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
for epoch in range(3):
    for inputs, labels in loader:
        with torch.no_grad():
            teacher_logits = teacher(inputs)
        logits = student(inputs)
        soft_loss = F.kl_div(
            F.log_softmax(logits / T, dim=1),
            F.softmax(teacher_logits / T, dim=1),
            reduction="batchmean",
        )
        loss = alpha * T * T * soft_loss + (1 - alpha) * F.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
