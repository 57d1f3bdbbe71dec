import lightning as L
import torch
from shared import ConvNet, textures
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAccuracy

EPOCHS, ACCUMULATE = 8, 2


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = ConvNet()
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
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-2)
        scheduler = CosineAnnealingLR(optimizer, self.trainer.estimated_stepping_batches)
        return [optimizer], [{"scheduler": scheduler, "interval": "step"}]


torch.manual_seed(0)
train = DataLoader(TensorDataset(*textures(512, seed=0)), batch_size=32, shuffle=True)
val = DataLoader(TensorDataset(*textures(256, seed=1)), batch_size=128)
classifier = Classifier()
trainer = L.Trainer(
    max_epochs=EPOCHS,
    precision="bf16-mixed",
    accumulate_grad_batches=ACCUMULATE,
    gradient_clip_val=1.0,
)
trainer.fit(classifier, train, val)
model, result = classifier.model, trainer.callback_metrics
