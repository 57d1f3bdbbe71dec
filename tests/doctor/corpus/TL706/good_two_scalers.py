"""One scaler looks at everything to draw a picture; what is trained on has its own."""
import numpy as np
import torch
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler
from torch import nn


def picture(X):
    points = PCA(n_components=2).fit_transform(X)
    return points.min(axis=0), points.max(axis=0)


X = np.random.rand(120, 5)
y = X @ np.array([1.0, -2.0, 0.5, 0.0, 3.0])
print(picture(X))
X_train, X_valid, y_train, y_valid = train_test_split(X, y, random_state=4)
scaler = MinMaxScaler()
X_train, X_valid = scaler.fit_transform(X_train), scaler.transform(X_valid)

net = nn.Linear(5, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
inputs = torch.from_numpy(X_train).float()
targets = torch.from_numpy(y_train).float()
for _ in range(30):
    optimizer.zero_grad()
    nn.functional.mse_loss(net(inputs)[:, 0], targets).backward()
    optimizer.step()
net.eval()
with torch.no_grad():
    print(nn.functional.mse_loss(net(torch.from_numpy(X_valid).float())[:, 0], torch.from_numpy(y_valid).float()).item())
