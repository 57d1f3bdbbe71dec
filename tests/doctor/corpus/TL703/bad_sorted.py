import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset):
    def __init__(self, images, labels):
        order = np.argsort(labels)
        self.images = torch.from_numpy(images[order])
        self.labels = torch.from_numpy(labels[order])

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, idx):
        return self.images[idx], self.labels[idx]


class Trainer:
    def __init__(self, model, train_set, lr=0.05):
        self.model = model
        self.loss_fn = torch.nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.train_loader = DataLoader(train_set, batch_size=32)  # <- TL703

    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            for images, labels in self.train_loader:
                self.optimizer.zero_grad()
                loss = self.loss_fn(self.model(images), labels)
                loss.backward()
                self.optimizer.step()


rng = np.random.default_rng(0)
images = rng.random((320, 16), dtype=np.float32)
labels = rng.integers(0, 10, 320)
trainer = Trainer(torch.nn.Linear(16, 10), Digits(images, labels))
trainer.fit(epochs=2)
