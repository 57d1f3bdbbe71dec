import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
NUM_EPOCHS = 4
train_ds = TensorDataset(torch.randn(90, 12), torch.randint(0, 3, (90,)))
train_dl = DataLoader(train_ds, batch_size=30, shuffle=True)
model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 3))
loss_function = nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters(), lr=0.001)

for epoch in range(NUM_EPOCHS):
    model.train()
    epoch_loss = 0.0
    for batch_x, batch_y in train_dl:
        optimizer.zero_grad()
        predictions = model(batch_x)
        loss = loss_function(predictions, batch_y)
        loss.backward()
        epoch_loss += loss.item() * len(batch_x)
    optimizer.step()  # <- TL107
    print(f'Epoch {epoch}: | Loss: {epoch_loss / len(train_ds):.5f}')
