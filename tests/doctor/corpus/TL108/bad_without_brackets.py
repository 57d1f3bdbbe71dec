import torch
import torch.nn.functional as F


def train(model, loader, optimizer, epoch, log_interval=2):
    model.train()
    for batch_idx, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        output = F.log_softmax(model(data), dim=1)
        loss = F.nll_loss(output, target)
        loss.backward
        optimizer.step()  # <- TL108
        if batch_idx % log_interval == 0:
            print(f"epoch {epoch} batch {batch_idx}: {loss.item():.4f}")


def main():
    torch.manual_seed(1)
    data = torch.utils.data.TensorDataset(torch.randn(32, 6), torch.randint(0, 4, (32,)))
    loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
    model = torch.nn.Linear(6, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        train(model, loader, optimizer, epoch)


if __name__ == "__main__":
    main()
