# %% [markdown]
# Training tutorial: cells that share their names

# %%
import torch
import torchmetrics
from torch import nn

# %%
torch.manual_seed(4)
inputs_all = torch.randn(90, 1, 6, 6)
labels_all = (inputs_all[:, 0, :3].mean(dim=(1, 2)) > 0).long()
training_set = torch.utils.data.TensorDataset(inputs_all[:60], labels_all[:60])
validation_set = torch.utils.data.TensorDataset(inputs_all[60:], labels_all[60:])
training_loader = torch.utils.data.DataLoader(training_set, batch_size=10, shuffle=True)
validation_loader = torch.utils.data.DataLoader(validation_set, batch_size=10, shuffle=False)


# %%
class SmallCNN(nn.Module):
    def __init__(self):
        super(SmallCNN, self).__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.bn = nn.BatchNorm2d(4)
        self.fc = nn.Linear(64, 2)

    def forward(self, x):
        x = torch.relu(self.bn(self.conv(x)))
        return self.fc(x.flatten(1))


model = SmallCNN()
loss_fn = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=2)


# %%
def train_one_epoch(epoch_index):
    running_loss = 0.0
    last_loss = 0.0

    # Here, we use enumerate(training_loader) instead of
    # iter(training_loader) so that we can track the batch index
    for i, data in enumerate(training_loader):
        # Every data instance is an input + label pair
        inputs, labels = data

        # Zero your gradients for every batch!
        optimizer.zero_grad()

        # Make predictions for this batch
        outputs = model(inputs)

        # Compute the loss and its gradients
        loss = loss_fn(outputs, labels)
        loss.backward()

        # Adjust learning weights
        optimizer.step()

        # Gather data and report
        running_loss += loss.item()
        if i % 3 == 2:
            last_loss = running_loss / 3  # loss per batch
            print("  batch {} loss: {}".format(i + 1, last_loss))
            running_loss = 0.0

    return last_loss


# %%
epoch_number = 0
EPOCHS = 3
best_vloss = 1_000_000.0

for epoch in range(EPOCHS):
    print("EPOCH {}:".format(epoch_number + 1))

    # Make sure gradient tracking is on, and do a pass over the data
    model.train(True)
    avg_loss = train_one_epoch(epoch_number)

    running_vloss = 0.0
    accuracy.reset()
    # Set the model to evaluation mode, disabling dropout and using population
    # statistics for batch normalization.
    model.eval()

    # Disable gradient computation and reduce memory consumption.
    with torch.no_grad():
        for i, vdata in enumerate(validation_loader):
            vinputs, vlabels = vdata
            voutputs = model(vinputs)
            vloss = loss_fn(voutputs, vlabels)
            running_vloss += vloss * len(vinputs)
            accuracy.update(voutputs, vlabels)

    avg_vloss = running_vloss / len(validation_set)
    print("LOSS train {} valid {} accuracy {}".format(avg_loss, avg_vloss, accuracy.compute()))

    # Track best performance, and save the model's state
    if avg_vloss < best_vloss:
        best_vloss = avg_vloss
        torch.save(model.state_dict(), "model_{}".format(epoch_number))

    epoch_number += 1
