import torch
from torch import nn, optim
from torch.optim import lr_scheduler

torch.manual_seed(0)
torch.set_num_threads(1)


def batches(count):
    return [(torch.randn(8, 5), torch.randint(0, 3, (8,))) for _ in range(count)]


dataloaders = {"train": batches(4), "val": batches(2)}
model_ft = nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 3))
optimizer_ft = optim.SGD(model_ft.parameters(), lr=0.05, momentum=0.9)
exp_lr_scheduler = lr_scheduler.StepLR(optimizer_ft, step_size=4, gamma=0.1)
criterion = nn.CrossEntropyLoss()

for epoch in range(5):
    for phase in ["train", "val"]:
        model_ft.train(phase == "train")
        running = 0.0
        for inputs, labels in dataloaders[phase]:
            optimizer_ft.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                loss = criterion(model_ft(inputs), labels)
                if phase == "train":
                    loss.backward()
                    optimizer_ft.step()
            running += loss.item()
        exp_lr_scheduler.step()  # <- TL608
        print(epoch, phase, running / len(dataloaders[phase]))
