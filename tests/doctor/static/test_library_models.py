"""Networks of installed packages, whose inside the reader does not know."""

from __future__ import annotations

import textwrap

import pytest

from trueloop.doctor.static import check_text

TRAINING = """
import torch
{network}
optimizer = torch.optim.AdamW(net.parameters())
train, val = torch.load("train.pt"), torch.load("val.pt")

@torch.no_grad()
def validate(loader):
    total = 0.0
    for x, y in loader:
        total += (net(x) - y).abs().sum().item()
    return total

for epoch in range(3):
    net.train()
    for x, y in train:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(net(x), y).backward()
        optimizer.step()
    print(validate(val))
{end}
"""
AUTOENCODER = "from diffusers import AutoencoderKL\nnet = AutoencoderKL.from_config({})"
UNET = "from diffusers import UNet2DModel\nnet = UNet2DModel(sample_size=32)"
MEDICAL = "from monai.networks.nets import UNet\nnet = UNet(spatial_dims=2, in_channels=1)"
BY_NAME = "import timm\nnet = timm.create_model(open('name').read())"
BERT = "from transformers import BertModel\nnet = BertModel.from_pretrained('bert-base-uncased')"


def found(network: str, end: str = "") -> list[str]:
    text = TRAINING.format(network=textwrap.dedent(network), end=end)
    return [each.code for each in check_text(text, "<text>", strict=True).findings]


@pytest.mark.parametrize("network", [AUTOENCODER, UNET, MEDICAL])
def test_train_alone_does_not_say_that_a_network_has_dropout(network: str) -> None:
    assert found(network) == []


@pytest.mark.parametrize("network", [AUTOENCODER, UNET, MEDICAL])
def test_eval_elsewhere_says_that_the_mode_matters(network: str) -> None:
    assert found(network, "net.eval()\nprint(validate(val))") == ["TL202"]


@pytest.mark.parametrize("network", [BY_NAME, BERT])
def test_networks_that_have_it_and_whatever_an_option_names(network: str) -> None:
    assert found(network) == ["TL202"]
