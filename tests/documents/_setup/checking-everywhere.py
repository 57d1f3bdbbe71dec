loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, targets), 16)
criterion = nn.CrossEntropyLoss()


def train(model, loader):
    for batch, labels in loader:
        optimizer.zero_grad()
        criterion(model(batch), labels).backward()
        optimizer.step()
