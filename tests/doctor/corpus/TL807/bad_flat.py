import io

import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Linear(6, 8)
        self.classifier = nn.Linear(8, 3)

    def forward(self, x):
        return self.classifier(torch.relu(self.features(x)))


file = io.BytesIO()
torch.save(nn.DataParallel(Net()).module.features.state_dict(), file)
file.seek(0)

model = Net()
state = torch.load(file, map_location="cpu")
model.load_state_dict(state, strict=False)  # <- TL807
model.eval()
with torch.no_grad():
    print(model(torch.zeros(1, 6)))
