"""Transfer learning twice in one script; the second schedule is still made for the first optimizer."""

import torch
from torch import nn
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
dataloader = DataLoader(TensorDataset(torch.randn(24, 6), torch.randint(0, 2, (24,))), 8, True)


def train_model(model, criterion, optimizer, scheduler, num_epochs=3):
    for epoch in range(num_epochs):
        model.train()
        for inputs, labels in dataloader:
            optimizer.zero_grad()
            loss = criterion(model(inputs), labels)
            loss.backward()
            optimizer.step()
        scheduler.step()
        print(epoch, loss.item(), optimizer.param_groups[0]["lr"])
    return model


criterion = nn.CrossEntropyLoss()

model_ft = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer_ft = torch.optim.SGD(model_ft.parameters(), lr=0.1, momentum=0.9)
exp_lr_scheduler = lr_scheduler.StepLR(optimizer_ft, step_size=1, gamma=0.1)
model_ft = train_model(model_ft, criterion, optimizer_ft, exp_lr_scheduler)

model_conv = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer_conv = torch.optim.SGD(model_conv.parameters(), lr=0.1, momentum=0.9)
exp_lr_scheduler = lr_scheduler.StepLR(optimizer_ft, step_size=1, gamma=0.1)  # <- TL607
model_conv = train_model(model_conv, criterion, optimizer_conv, exp_lr_scheduler)
