import lightning as L
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from shared import Prices, houses
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, TensorDataset

EPOCHS, PATIENCE = 40, 6


class Regression(L.LightningModule):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.criterion = nn.HuberLoss(delta=50.0)

    def training_step(self, batch, batch_idx):
        *columns, targets = batch
        return self.criterion(self.model(*columns), targets)

    def validation_step(self, batch, batch_idx):
        *columns, targets = batch
        self.log("loss", self.criterion(self.model(*columns), targets))

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-2, fused=True)
        scheduler = ReduceLROnPlateau(optimizer, factor=0.3, patience=2)
        return [optimizer], [{"scheduler": scheduler, "monitor": "loss"}]


torch.manual_seed(0)
numbers, towns, prices = houses(600, seed=0)
train = DataLoader(TensorDataset(numbers, towns, prices), batch_size=50, shuffle=True)
val = DataLoader(TensorDataset(*houses(300, seed=1)), batch_size=150)
model = Prices(numbers, prices)
best = ModelCheckpoint(monitor="loss")
trainer = L.Trainer(max_epochs=EPOCHS, callbacks=[EarlyStopping("loss", patience=PATIENCE), best])
trainer.fit(Regression(model), train, val)
Regression.load_from_checkpoint(best.best_model_path, model=model)
result = {"loss": best.best_model_score}
