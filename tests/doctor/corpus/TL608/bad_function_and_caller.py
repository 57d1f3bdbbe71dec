import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

torch.manual_seed(0)
torch.set_num_threads(1)
NUM_EPOCHS, BATCH_SIZE = 4, 16

inputs = torch.randn(160, 2, 6, 6)
targets = (inputs.mean(dim=(1, 2, 3)) > 0).long()
trainloader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(inputs, targets), batch_size=BATCH_SIZE, shuffle=True
)


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 8, 3)
        self.fc = nn.Linear(8, 2)

    def forward(self, x):
        return self.fc(F.relu(self.conv(x)).mean(dim=(2, 3)))


def train(epoch, net, optimizer, scheduler):
    net.train()
    running = 0.0
    for data, target in trainloader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(data), target)
        loss.backward()
        optimizer.step()
        scheduler.step()
        running += loss.item()
    print(f"[{epoch}] {running / len(trainloader):.4f}")


net = CNN()
optimizer = optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
total = NUM_EPOCHS * len(trainloader)
scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=total + NUM_EPOCHS)
for epoch in range(NUM_EPOCHS):
    train(epoch, net, optimizer, scheduler)
    scheduler.step()  # <- TL608
