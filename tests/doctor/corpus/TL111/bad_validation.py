import torch
from torch import nn


@torch.no_grad()
def evaluate(net, batches):
    net.eval()
    correct, seen = 0, 0
    for i, (images, labels) in enumerate(batches):
        guess = net(images).argmax(dim=1)
        correct += (guess == labels).sum().item()
        seen += len(labels)
        if i % 10 == 0:
            print("evaluated", seen)
        return 100 * correct / seen  # <- TL111


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    images, labels = torch.rand(60, 1, 4, 4), torch.randint(0, 3, (60,))
    data = torch.utils.data.TensorDataset(images, labels)
    train, test = torch.utils.data.random_split(data, [40, 20])
    net = nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))
    opt = torch.optim.Adam(net.parameters())
    for epoch in range(2):
        net.train()
        for x, y in torch.utils.data.DataLoader(train, 10, shuffle=True):
            opt.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            opt.step()
        print(epoch, evaluate(net, torch.utils.data.DataLoader(test, 5)))


if __name__ == "__main__":
    main()
