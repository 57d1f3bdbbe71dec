import torch
from torch import nn


@torch.no_grad()
def evaluate(net, dataloader, device):
    net.eval()
    correct = total = 0
    for images, labels in dataloader:
        logits = net.forward(images.to(device))  # <- TL205
        correct += (logits.argmax(1) == labels.to(device)).sum().item()
        total += len(labels)
    net.train()
    return correct / total


def build():
    return {"mlp": nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))}["mlp"]


if __name__ == "__main__":
    torch.manual_seed(0)
    batches = [(torch.randn(8, 4), torch.randint(0, 2, (8,))) for _ in range(3)]
    print(evaluate(build(), batches, "cpu"))
