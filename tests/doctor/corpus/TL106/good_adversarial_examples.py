import torch
import torch.nn as nn


def fgsm_attack(image, epsilon, data_grad):
    return torch.clamp(image + epsilon * data_grad.sign(), 0, 1)


def test(model, test_loader, epsilon):
    correct, total = 0, 0
    for data, target in test_loader:
        data.requires_grad = True
        output = model(data)
        loss = nn.functional.cross_entropy(output, target)
        model.zero_grad()
        loss.backward()
        perturbed = fgsm_attack(data, epsilon, data.grad.data)
        with torch.no_grad():
            correct += (model(perturbed).argmax(1) == target).sum().item()
        total += len(target)
    return correct / total


torch.manual_seed(0)
model = nn.Sequential(nn.Flatten(), nn.Linear(16, 10))
model.eval()
ds = torch.utils.data.TensorDataset(torch.rand(30, 1, 4, 4), torch.randint(0, 10, (30,)))
loader = torch.utils.data.DataLoader(ds, batch_size=10)
for eps in (0.0, 0.1):
    print(eps, test(model, loader, eps))
