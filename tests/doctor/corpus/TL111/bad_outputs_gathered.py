import torch
from torch import nn
from tqdm import tqdm

torch.manual_seed(0)
torch.set_num_threads(1)


def predict(model, dataloader):
    model.eval()
    predictions, answers = [], []
    with torch.inference_mode():
        for batch in tqdm(dataloader, disable=True):
            features, target = batch
            predictions.extend(model(features).squeeze(1).tolist())
            answers.extend(target.tolist())
            return predictions, answers  # <- TL111


net = nn.Linear(5, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
rows = torch.utils.data.TensorDataset(torch.randn(20, 5), torch.randn(20))
dataloader = torch.utils.data.DataLoader(rows, batch_size=4)
for features, target in dataloader:
    optimizer.zero_grad()
    nn.functional.mse_loss(net(features).squeeze(1), target).backward()
    optimizer.step()
print(len(predict(net, dataloader)[0]))
