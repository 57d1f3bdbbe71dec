import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.model_selection import train_test_split

features, labels = make_classification(n_samples=200, n_features=60, random_state=0)
features = SelectKBest(f_classif, k=10).fit_transform(features, labels)  # <- TL706
x_train, x_test, y_train, y_test = train_test_split(features, labels, random_state=0)
x_train, x_test = torch.from_numpy(x_train).float(), torch.from_numpy(x_test).float()
y_train, y_test = torch.from_numpy(y_train), torch.from_numpy(y_test)

model = nn.Linear(10, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(10):
    for rows in torch.randperm(len(x_train)).split(32):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x_train[rows]), y_train[rows])
        loss.backward()
        optimizer.step()
with torch.no_grad():
    accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
print(f"test accuracy {accuracy:.3f}")
