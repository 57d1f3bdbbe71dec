import lightning as L
import torch
from shared import pretrained, textures
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAccuracy

EPOCHS = 5


class FineTuned(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = pretrained()
        self.model.stem.requires_grad_(False).eval()
        self.model.head.reset_parameters()
        self.accuracy = MulticlassAccuracy(4, average="micro")

    def training_step(self, batch, batch_idx):
        images, labels = batch
        return cross_entropy(self.model(images), labels)

    def validation_step(self, batch, batch_idx):
        images, labels = batch
        logits = self.model(images)
        self.accuracy(logits, labels)
        self.log("loss", cross_entropy(logits, labels))
        self.log("accuracy", self.accuracy)

    def configure_optimizers(self):
        groups = [
            {"params": self.model.body.parameters(), "lr": 1e-3},
            {"params": self.model.head.parameters(), "lr": 1e-2},
        ]
        return torch.optim.AdamW(groups, weight_decay=0.01)


torch.manual_seed(0)
train = DataLoader(TensorDataset(*textures(256, seed=0)), batch_size=32, shuffle=True)
val = DataLoader(TensorDataset(*textures(256, seed=1)), batch_size=128)
fine_tuned = FineTuned()
trainer = L.Trainer(max_epochs=EPOCHS)
trainer.fit(fine_tuned, train, val)
model, result = fine_tuned.model, trainer.callback_metrics
