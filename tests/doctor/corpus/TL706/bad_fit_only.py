import numpy as np
import torch
from sklearn import model_selection, preprocessing
from torch.utils.data import DataLoader, Dataset


class Table(Dataset):
    def __init__(self, features, target):
        self.features = torch.as_tensor(features, dtype=torch.float32)
        self.target = torch.as_tensor(target, dtype=torch.float32)

    def __len__(self):
        return len(self.target)

    def __getitem__(self, i):
        return self.features[i], self.target[i]


def prepare(features, target, seed=0):
    scaler = preprocessing.RobustScaler()
    scaler.fit(features)  # <- TL706
    train_x, val_x, train_y, val_y = model_selection.train_test_split(
        features, target, test_size=0.25, random_state=seed
    )
    return Table(scaler.transform(train_x), train_y), Table(scaler.transform(val_x), val_y)


def run(model, loader, optimizer=None):
    model.train(optimizer is not None)
    total = 0.0
    with torch.set_grad_enabled(optimizer is not None):
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(model(x)[:, 0], y)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(x)
    return total / len(loader.dataset)


if __name__ == "__main__":
    rng = np.random.default_rng(3)
    features = rng.normal(5, 3, (200, 6))
    train_set, val_set = prepare(features, features @ rng.normal(size=6))
    train_loader = DataLoader(train_set, batch_size=25, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=25)
    model = torch.nn.Linear(6, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for epoch in range(4):
        print(epoch, run(model, train_loader, optimizer), run(model, val_loader))
