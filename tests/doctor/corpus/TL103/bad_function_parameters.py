import torch
from torch import nn, optim


def train_epoch(net, trainloader, optimizer, criterion):
    net.train()
    for i, data in enumerate(trainloader, 0):
        # get the inputs; data is a list of [inputs, labels]
        inputs, labels = data

        # zero the parameter gradients
        optimizer.zero_grad()

        # forward + optimize + backward
        outputs = net(inputs)
        loss = criterion(outputs, labels)
        optimizer.step()  # <- TL103
        loss.backward()

        if i % 2 == 1:
            print('[%5d] loss: %.3f' % (i + 1, loss.item()))


if __name__ == '__main__':
    torch.manual_seed(0)
    trainset = torch.utils.data.TensorDataset(torch.randn(40, 3, 8, 8), torch.randint(0, 5, (40,)))
    trainloader = torch.utils.data.DataLoader(trainset, batch_size=10, shuffle=True)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5))
    train_epoch(net, trainloader, optim.SGD(net.parameters(), lr=0.01, momentum=0.9), nn.CrossEntropyLoss())
    print('Finished Training')
