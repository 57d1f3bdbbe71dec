import torch
import torch.nn as nn


class SegNet(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.n_classes = n_classes
        self.body = nn.Conv2d(1, n_classes, 3, padding=1)

    def forward(self, x):
        return self.body(x)


def train_model(model, epochs=2, lr=1e-2):
    optimizer = torch.optim.RMSprop(model.parameters(), lr=lr)
    # One class is told by its probability, several by their logits.
    criterion = nn.CrossEntropyLoss() if model.n_classes > 1 else nn.BCELoss()
    data = [(torch.randn(2, 1, 8, 8), torch.randint(0, 2, (2, 8, 8))) for _ in range(3)]
    for epoch in range(1, epochs + 1):
        model.train()
        for images, true_masks in data:
            masks_pred = model(images)
            if model.n_classes == 1:
                loss = criterion(torch.sigmoid(masks_pred.squeeze(1)), true_masks.float())
            else:
                loss = criterion(masks_pred, true_masks)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    torch.manual_seed(0)
    for n_classes in (1, 2):
        train_model(SegNet(n_classes))
