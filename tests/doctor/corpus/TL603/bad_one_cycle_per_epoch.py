import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)

num_epochs = 5
X = torch.randn(320, 10)
Y = X[:, :3].argmax(dim=1)
train_dl = DataLoader(TensorDataset(X, Y), batch_size=32, shuffle=True)

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
sched = torch.optim.lr_scheduler.OneCycleLR(
    opt, max_lr=0.2, epochs=num_epochs, steps_per_epoch=len(train_dl)
)
loss_func = nn.CrossEntropyLoss()

for epoch in range(num_epochs):
    model.train()
    for xb, yb in train_dl:
        loss = loss_func(model(xb), yb)
        loss.backward()
        opt.step()
        opt.zero_grad()
    sched.step()  # <- TL603
    print(epoch, loss.item(), sched.get_last_lr())
