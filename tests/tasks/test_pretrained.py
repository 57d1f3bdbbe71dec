"""Published checkpoints: read as their authors publish them, written as transformers reads them.

Models of random weights made with transformers are the reference.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given, settings, strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from trueloop import lora
from trueloop.errors import ConfigError, RunError
from trueloop.tasks.text import pretrained, publish
from trueloop.tasks.text.chat_template import PLAIN, ChatTemplate
from trueloop.tasks.text.tokenizer import ByteTokenizer, CharTokenizer, Tokenizer
from trueloop.tasks.text.transformer import Transformer
from trueloop.tasks.text.transformer_config import TransformerConfig

VOCABULARY = 61
_GPT2 = {"vocab_size": VOCABULARY, "n_positions": 32, "n_embd": 24, "n_layer": 2, "n_head": 3}
_LLAMA = {
    "vocab_size": VOCABULARY,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
_LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
_LINEAR = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2", _GPT2),
    "gpt2-untied": (
        "GPT2",
        _GPT2 | {"n_inner": 50, "activation_function": "gelu", "tie_word_embeddings": False},
    ),
    "llama": ("Llama", _LLAMA),
    "llama3": (
        "Llama",
        _LLAMA
        | {"tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True}
        | {"rope_parameters": _LLAMA3},
    ),
    "linear": ("Llama", _LLAMA | {"head_dim": 16, "rope_parameters": _LINEAR}),
    "mistral": ("Mistral", _LLAMA | {"sliding_window": 32}),
    "qwen3": ("Qwen3", _LLAMA | {"head_dim": 8}),
}


def reference(case: str) -> Any:
    kind, options = CASES[case]
    torch.manual_seed(1)
    config = getattr(transformers, f"{kind}Config")(**options)
    head = "LMHeadModel" if kind == "GPT2" else "ForCausalLM"
    model = getattr(transformers, kind + head)(config).eval()
    for parameter in model.parameters():  # norms and biases too
        nn.init.normal_(parameter, std=0.3)
    return model


def tokens() -> Tensor:
    return torch.randint(0, VOCABULARY, (3, 30), generator=torch.Generator().manual_seed(2))


@torch.no_grad()
def logits(model: nn.Module) -> Tensor:
    found = model(tokens())
    return found if isinstance(found, Tensor) else found.logits  # type: ignore[no-any-return]


def opened(folder: Path) -> Transformer:
    found = pretrained.open_folder(folder)
    model = Transformer(found.config).eval()
    found.fill(model)
    return model


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("sharded", [False, True])
def test_a_published_model_has_the_logits_of_transformers(
    case: str, sharded: bool, tmp_path: Path
) -> None:
    model = reference(case)
    model.save_pretrained(tmp_path, max_shard_size="10KB" if sharded else "1GB")
    assert (tmp_path / "model.safetensors").exists() is not sharded
    torch.testing.assert_close(logits(opened(tmp_path)), logits(model), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_on_disk_is_widened(dtype: torch.dtype, tmp_path: Path) -> None:
    reference("llama").to(dtype).save_pretrained(tmp_path)
    ours = opened(tmp_path)
    assert ours.head.weight.dtype == torch.float32
    load = transformers.AutoModelForCausalLM.from_pretrained
    expected = logits(load(tmp_path, dtype=torch.float32))
    torch.testing.assert_close(logits(ours), expected, rtol=1e-5, atol=1e-5)


def test_names_without_a_prefix_buffers_and_the_old_keys_of_the_config(tmp_path: Path) -> None:
    """As the oldest files of GPT-2 have them, and those of Llama 3.1."""
    for case, changes in (
        ("gpt2", {"model_type": None, "torch_dtype": None}),
        ("llama3", {"rope_parameters": None, "rope_theta": 500.0, "rope_scaling": _LLAMA3}),
    ):
        model = reference(case)
        folder = tmp_path / case
        model.save_pretrained(folder)
        config = json.loads((folder / "config.json").read_text()) | changes
        (folder / "config.json").write_text(json.dumps(config))
        weights = {
            name.removeprefix("transformer.").removeprefix("model."): tensor
            for name, tensor in load_file(folder / "model.safetensors").items()
        }
        buffers = {"h.0.attn.bias": torch.ones(1, 1, 32, 32), "h.1.attn.masked_bias": torch.ones(1)}
        if case == "llama3":
            buffers = {"layers.0.self_attn.rotary_emb.inv_freq": torch.ones(3)}
        head = {"lm_head.weight": model.lm_head.weight.detach().clone()}
        save_file(weights | buffers | head, folder / "model.safetensors")
        torch.testing.assert_close(logits(opened(folder)), logits(model), rtol=1e-5, atol=1e-5)


def _edit_config(**changes: Any) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        path = folder / "config.json"
        config = json.loads(path.read_text()) | changes
        path.write_text(json.dumps({n: v for n, v in config.items() if v is not ...}))

    return edit


def _edit_weights(change: Callable[[dict[str, Tensor]], object]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        change(weights)
        save_file(weights, folder / "model.safetensors")

    return edit


def _cut(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-7])


def _to_pickle(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    torch.save(weights, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def _index(**entries: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        path = folder / "model.safetensors.index.json"
        path.write_text(json.dumps({"weight_map": entries}))

    return write


_NORM = "transformer.h.1.ln_1.weight"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "config.json").unlink(), "has no config.json: name a folder"),
        (lambda folder: (folder / "config.json").write_text("{"), "config.json is not JSON"),
        (lambda folder: (folder / "config.json").write_text("[]"), "contains no JSON object"),
        (_edit_config(model_type="bert"), "'bert' is not supported: give a model of gpt2, llama"),
        (_edit_config(n_layer=...), "config.json: it lacks 'n_layer'"),
        (_edit_config(n_embd="24"), "config.json: width='24' is not an integer"),
        (_edit_config(n_head=5), "config.json: width=24 cannot be divided by heads=5"),
        (_edit_config(n_layer=10**9), r"has 28 tensors, .* for 1,000,000,000 layers"),
        (_edit_config(n_inner=10**18), "cannot be built"),
        (_edit_config(n_embd=[3]), "width=.* is not an integer"),
        (_edit_config(scale_attn_by_inverse_layer_idx=True), "idx=True, which is not supported"),
        (_edit_config(activation_function="relu"), "activation_function='relu', which is not"),
        (_edit_config(quantization_config={"bits": 4}), "its weights are quantized"),
        (_edit_config(n_positions=48), r"'wpe.weight' has the shape \(32, 24\), .* \(48, 24\)"),
        (_edit_config(n_layer=3), r"lacks the tensor 'h.2.ln_1.weight', of shape \(24,\)"),
        (_edit_config(n_layer=1), r"does not have \(h.1.attn.c_attn.bias, .* and 9 more\)"),
        (_edit_weights(lambda w: w.pop(_NORM)), "lacks the tensor 'h.1.ln_1.weight'"),
        (
            _edit_weights(lambda w: w.update({_NORM: torch.ones(7)})),
            r"'h.1.ln_1.weight' has the shape \(7,\), and config.json calls for \(24,\)",
        ),
        (
            _edit_weights(lambda w: w.update({_NORM: torch.ones(24, dtype=torch.int8)})),
            "'h.1.ln_1.weight' is I8, but only bf16, fp16 and fp32 can be read",
        ),
        (
            _edit_weights(lambda w: w.update({"h.1.ln_1.weight": torch.ones(24)})),
            "has both .* which are the same weight",
        ),
        (_cut, "model.safetensors is damaged or not a safetensors file"),
        (_to_pickle, r"only as a pickle \(pytorch_model.bin\), .*save_pretrained"),
        (lambda folder: (folder / "model.safetensors").unlink(), "no model.safetensors and no"),
        (_index(a="../model.safetensors"), "which is not a file of that folder"),
        (_index(a="model-00001-of-00001.safetensors"), "00001.safetensors is missing"),
        (_index(), "has no weight_map"),
    ],
)  # fmt: skip
def test_a_folder_that_is_not_whole_is_one_line(
    spoil: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    reference("gpt2").save_pretrained(tmp_path)
    spoil(tmp_path)
    with pytest.raises(RunError, match=message) as raised:
        pretrained.open_folder(tmp_path)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_act": "gelu"}, "hidden_act='gelu', which is not supported"),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 2.0}}, "rope_type 'yarn', which is"),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor=0.5"),
        ({"rope_parameters": 3}, "its rope_scaling is 3"),
        ({"rms_norm_eps": "small"}, "norm_eps='small' is not a number"),
        ({"layer_types": ["sliding_attention"]}, "use_sliding_window=True"),
        ({"layer_types": 3}, "a value of the wrong kind"),
    ],
)  # fmt: skip
def test_what_a_llama_may_have_and_we_do_not_is_one_line(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    reference("llama").save_pretrained(tmp_path)
    _edit_config(**changes)(tmp_path)
    with pytest.raises(RunError, match=message):
        pretrained.open_folder(tmp_path)


def test_no_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no folder"):
        pretrained.open_folder(tmp_path / "nothing")


SHAPES: dict[str, dict[str, Any]] = {
    "gpt2": {"norm": "layer", "positions": "learned", "activation": "gelu_tanh", "bias": True},
    "gpt2 without biases": {
        "norm": "layer", "positions": "learned", "activation": "gelu", "tied": False,
    },
    "llama": {"kv_heads": 2},
    "llama with biases": {"bias": True, "tied": False, "rotary_scaling": _LINEAR},
    "qwen3": {"qk_norm": True, "attention_bias": True, "head_width": 8},
}  # fmt: skip


def transformer(**shape: Any) -> Transformer:
    torch.manual_seed(0)
    sizes = {"vocab_size": VOCABULARY, "context": 32, "layers": 2, "width": 24, "heads": 4}
    model = Transformer(TransformerConfig(**(sizes | shape))).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model


@pytest.mark.parametrize("shape", SHAPES)
def test_transformers_loads_what_is_written_with_the_same_logits(
    shape: str, tmp_path: Path
) -> None:
    model = transformer(**SHAPES[shape])
    folder = publish.write_folder(tmp_path / "out", model)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder)
    torch.testing.assert_close(logits(theirs), logits(model), rtol=1e-5, atol=1e-5)
    assert torch.equal(logits(opened(folder)), logits(model))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_weights_are_written_in_half_precision_where_asked(tmp_path: Path) -> None:
    model = transformer()
    folder = publish.write_folder(tmp_path / "out", model, dtype="bf16")
    load = transformers.AutoModelForCausalLM.from_pretrained
    assert load(folder).dtype == torch.bfloat16
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.bfloat16())
    theirs = load(folder, dtype=torch.float32)
    torch.testing.assert_close(logits(theirs), logits(model), rtol=1e-5, atol=1e-5)


ALPHABET = "abc dé\n\r\t日本'<|>endoftx"


@pytest.mark.parametrize("end_of_text", [False, True])
@pytest.mark.parametrize("kind", ["char", "byte"])
def test_the_tokenizer_is_loaded_with_the_same_ids(
    kind: str, end_of_text: bool, tmp_path: Path
) -> None:
    tokenizer: Tokenizer = (
        CharTokenizer(ALPHABET, end_of_text=end_of_text)
        if kind == "char"
        else ByteTokenizer(end_of_text=end_of_text)
    )
    template = "{% for message in messages %}{{ message['content'] }};{% endfor %}"
    folder = publish.write_folder(
        tmp_path / "out", transformer(vocab_size=300), tokenizer, chat_template=template
    )
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    assert theirs.eos_token_id == tokenizer.end_of_text
    assert theirs.model_max_length == 32
    chat = [{"role": "user", "content": "ab"}]
    assert theirs.apply_chat_template(chat, tokenize=False) == "ab;"
    for text in ("ab  cd\n\n\ré 日本'a\t ", "", "   ", "\n"):
        assert theirs(text)["input_ids"] == tokenizer.encode(text)
        assert theirs.decode(tokenizer.encode(text)) == text


@settings(max_examples=60, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_has_the_same_bytes_as_ids(text: str) -> None:
    library = publish.as_library(ByteTokenizer())
    assert library.encode(text).ids == ByteTokenizer().encode(text)
    assert library.decode(library.encode(text).ids) == text


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ({"activation": "relu2"}, "no architecture that transformers loads has norm rms, .*relu2"),
        ({"norm": "layer"}, "norm layer, positions rotary"),
        ({**SHAPES["gpt2"], "kv_heads": 2}, "GPT-2 of transformers has no kv_heads=2"),
        ({"qk_norm": True, "bias": True}, "Qwen3 of transformers has no bias=True"),
    ],
)
def test_a_shape_without_a_counterpart_is_refused(
    shape: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        publish.write_folder(tmp_path / "out", transformer(**shape))
    assert not list(tmp_path.iterdir())


def test_a_folder_is_never_written_over_nor_left_half(tmp_path: Path) -> None:
    model = transformer()
    with pytest.raises(RunError, match="exists: name a folder that is not there"):
        publish.write_folder(tmp_path, model)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot write"):
        publish.write_folder(tmp_path / "file" / "out", model)
    with pytest.raises(ConfigError, match="the tokenizer has 256 ids and the model 61"):
        publish.write_folder(tmp_path / "out", model, ByteTokenizer())
    with pytest.raises(ConfigError, match=r"merge it, lora.merge\(model\)"):
        publish.write_folder(tmp_path / "out", lora.apply(transformer(), ["query"], rank=2))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_one_tensor_at_a_time_is_read(tmp_path: Path) -> None:
    """The generator gives each weight once, tied ones once, and no fused tensor as a whole."""
    reference("gpt2").save_pretrained(tmp_path)
    found = pretrained.open_folder(tmp_path)
    shapes = {name: tuple(value.shape) for name, value in found.weights()}
    assert shapes == pretrained.shapes_of(found.config)
    assert shapes["blocks.0.attention.query.weight"] == (24, 24)
    assert "head.weight" not in shapes
    same = dataclasses.replace(found.config, dropout=0.1)
    assert same.dropout == 0.1
    assert found.config.dropout == 0.0


def test_a_conversation_has_the_text_of_transformers() -> None:
    from transformers.utils.chat_template_utils import render_jinja_template

    chatml = (
        "{%- for message in messages %}\n    {{- '<|im_start|>' + message['role'] + '\\n' }}"
        "{{ message.content | trim }}<|im_end|>\n{%- endfor %}"
        "{%- if add_generation_prompt %}\n{{- '<|im_start|>assistant\\n' }}{%- endif %}"
    )
    messages = [
        {"role": "user", "content": " 2+2? "},
        {"role": "assistant", "content": "4\n"},
    ]
    tokenizer = ByteTokenizer(end_of_text=True)
    for source in (chatml, PLAIN, "{{ messages | tojson }}"):
        for opens in (False, True):
            (theirs,), _ = render_jinja_template(
                [messages], chat_template=source, add_generation_prompt=opens, eos_token="\ufdd0"
            )
            ours = ChatTemplate(source, tokenizer).text(messages, opens_response=opens)
            assert ours == theirs
