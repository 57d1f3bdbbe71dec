import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
data = torch.utils.data.TensorDataset(torch.randn(24, 4), torch.randint(0, 2, (24,)))
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def first_batch(batches):
    for inputs, labels in batches:
        return inputs, labels


def shapes_of_one(batches):
    found = []
    for inputs, labels in batches:
        local = [inputs.shape]
        local.append(labels.shape)
        found = local
        return found


inputs, labels = first_batch(loader)
print(shapes_of_one(loader))
for i in range(20):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(net(inputs), labels)
    loss.backward()
    opt.step()
print("one batch can be learned by heart", loss.item())
