import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Writer:
    def add_scalar(self, tag, value, step):
        if step % 3 == 0:
            print(f"{tag} {float(value):.4f}")


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(24, 5), torch.randint(0, 3, (24,))), 8, shuffle=True)
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 3))
loss_function = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
writer = Writer()


def train(epoch):
    net.train()
    for batch_index, (images, labels) in enumerate(loader):
        optimizer.zero_grad()
        outputs = net(images)
        loss = loss_function(outputs, labels)
        loss.backward()  # <- TL106

        n_iter = (epoch - 1) * len(loader) + batch_index + 1
        last_layer = list(net.children())[-1]
        for name, para in last_layer.named_parameters():
            if "weight" in name:
                writer.add_scalar("LastLayerGradients/norm2_weights", para.grad.norm(), n_iter)
        writer.add_scalar("Train/loss", loss.item(), n_iter)


for epoch in range(1, 3):
    train(epoch)
