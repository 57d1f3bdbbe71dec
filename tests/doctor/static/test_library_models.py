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


PREDICTION = """
import sys
import torch
from torch import nn
from transformers import BertConfig, BertModel, BertPreTrainedModel, GPT2Config, GPT2Model
from transformers import GPT2PreTrainedModel

class Tagger(BertPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.bert = BertModel(config)
        self.head = nn.Linear(config.hidden_size, 4)

    def forward(self, ids):
        return self.head(self.bert(ids)[0])

class Writer(GPT2PreTrainedModel):
    def __init__(self, config, width=4):
        super().__init__(config)
        self.body, self.head = GPT2Model(config), nn.Linear(config.n_embd, width)

    def forward(self, ids):
        return self.head(self.body(ids)[0])

class Plain(nn.Module):
    @classmethod
    def from_pretrained(cls, path):
        return torch.load(path)

{network}
for ids in torch.utils.data.DataLoader(torch.load("ids.pt"), batch_size=8):
    tags = net(ids)
    print(tags.detach().argmax(-1))
"""
OF_ONE_CLASS = "net = Tagger.from_pretrained('weights')"
OF_A_CONFIGURATION = (
    "net = Writer.from_pretrained('weights', config=GPT2Config.from_pretrained('weights'), width=9)"
)
OF_A_TABLE = """\
KINDS = {"bert": (BertConfig, Tagger), "gpt2": (GPT2Config, Writer)}
config_class, model_class = KINDS[sys.argv[1]]
net = model_class.from_pretrained("weights", config=config_class.from_pretrained("weights"))"""
OF_A_TABLE_OF_CLASSES = """\
net = {"bert": Tagger, "gpt2": Writer}[sys.argv[1]].from_pretrained("weights")"""
OF_OTHERS_TOO = OF_A_TABLE.replace("Writer)", "Plain)")
TRAINS = f"{OF_ONE_CLASS}\nnet.train()"
ON_ITS_OWN = "net = Plain.from_pretrained('weights')"


@pytest.mark.parametrize(
    "network", [OF_ONE_CLASS, OF_A_CONFIGURATION, OF_A_TABLE, OF_A_TABLE_OF_CLASSES]
)
def test_own_classes_are_handed_out_in_eval_mode(network: str) -> None:
    text = PREDICTION.replace("{network}", network)
    assert [each.code for each in check_text(text, "<text>", strict=True).findings] == ["TL203"]


@pytest.mark.parametrize("network", [OF_OTHERS_TOO, TRAINS, ON_ITS_OWN])
def test_what_is_not_known_to_be_in_eval_mode(network: str) -> None:
    text = PREDICTION.replace("{network}", network)
    assert check_text(text, "<text>", strict=True).findings == []


def test_what_own_classes_have_inside_is_known() -> None:
    own = """
        from torch import nn
        from transformers import {base}
        class Net({base}):
            def __init__(self, config):
                super().__init__(config)
                self.layers = nn.Sequential(nn.Linear(4, 8), {layer}, nn.Linear(8, 1))
            def forward(self, x):
                return self.layers(x)
        net = Net.from_pretrained("weights")"""
    for base, layer, codes in (
        ("PreTrainedModel", "nn.Dropout(0.2)", ["TL202"]),
        ("PreTrainedModel", "nn.ReLU()", []),
        ("T5PreTrainedModel", "nn.ReLU()", []),
    ):
        assert found(own.format(base=base, layer=layer)) == codes


CONFIGURED = """
from transformers import AutoConfig, AutoModel, XLNetConfig, XLNetModel
config = AutoConfig.from_pretrained('bert-base-uncased'{given})
{more}
net = {network}"""
BY_CONFIG = "AutoModel.from_pretrained('bert-base-uncased', config=config)"
RATES = "hidden_dropout_prob=0, attention_probs_dropout_prob=0"


@pytest.mark.parametrize(
    ("given", "more", "network"),
    [
        ("", "", f"AutoModel.from_pretrained('bert-base-uncased', {RATES})"),
        (f", {RATES}", "", BY_CONFIG),
        (f", {RATES}", "", "AutoModel.from_config(config)"),
        ("", "config.hidden_dropout = config.attention_dropout = 0.0", BY_CONFIG),
        (
            "",
            "config.update({'resid_pdrop': 0.0, 'embd_pdrop': 0.0, 'attn_pdrop': 0.0})",
            BY_CONFIG,
        ),
        ("", "", "XLNetModel.from_pretrained('xlnet-base-cased', dropout=0)"),
        ("", "config = XLNetConfig.from_json_file('xlnet.json')\nconfig.dropout = 0", BY_CONFIG),
    ],
)
def test_a_network_whose_dropout_is_turned_off(given: str, more: str, network: str) -> None:
    text = CONFIGURED.format(given=given, more=more, network=network)
    assert found(text, "net.eval()\nprint(validate(val))") == []
    head = f"{text}\nnet = torch.nn.Sequential(net, torch.nn.Dropout(0.2))"
    assert found(head, "net.eval()\nprint(validate(val))") == ["TL202"]


@pytest.mark.parametrize(
    ("given", "more"),
    [
        (", hidden_dropout_prob=0", ""),  # attention still has its own
        (", activation_dropout=0.0, attention_dropout=0.0", ""),  # and here BART's layers
        (", hidden_dropout_prob=0, attention_probs_dropout_prob=0.1", ""),
        ("", "config.update({'hidden_dropout_prob': 0.0, 'layer_norm_eps': 1e-7})"),
        ("", "config.update(open('settings').read())"),
        (f", {RATES}", "config.hidden_dropout_prob = 0.2"),
    ],
)
def test_a_network_with_dropout_left(given: str, more: str) -> None:
    text = CONFIGURED.format(given=given, more=more, network=BY_CONFIG)
    assert found(text, "net.eval()\nprint(validate(val))") == ["TL202"]
