"""Writing a model as models are published: a folder that `transformers` loads by itself.

publish.write_folder("shakespeare", model, tokenizer)
...
AutoModelForCausalLM.from_pretrained("shakespeare")     # the same logits
AutoTokenizer.from_pretrained("shakespeare")            # the same ids
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trueloop import _options
from trueloop.atomic import flush_folder
from trueloop.checkpoint import cannot_write, write_atomic
from trueloop.checkpoint.export import WeightsHeader, write_tensors
from trueloop.errors import ConfigError, MissingDependencyError, RunError
from trueloop.tasks.text.architectures import PREFIX, Json, WeightLocation, place, published_config
from trueloop.tasks.text.pretrained import CONFIG, TOKENIZER, WEIGHTS, shape_there, shapes_of
from trueloop.tasks.text.tokenizer import Tokenizer
from trueloop.tasks.text.transformer import Transformer
from trueloop.tasks.text.transformer_config import TransformerConfig

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
_NAMES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
_END_OF_TEXT, _UNKNOWN = "<|endoftext|>", "<|unknown|>"
_MARKS_FROM = 0x100
"""Where GPT-2's table puts the bytes that are not visible characters of Latin-1."""


def write_folder(
    folder: str | Path,
    model: Transformer,
    tokenizer: Tokenizer | None = None,
    *,
    dtype: str = "fp32",
    chat_template: str | None = None,
) -> Path:
    """Write `model` and `tokenizer` as `transformers` loads them; returns the folder.

    It has config.json, generation_config.json, model.safetensors in `dtype` (fp32, bf16 or fp16),
    tokenizer.json and tokenizer_config.json (with `chat_template`, where there is one), and is
    whole or absent. One tensor at a time is in memory beside the model.

    Raises `ConfigError` where no architecture of `transformers` computes what the model does, or
    LoRA adapters are not merged; `RunError` where the folder exists or cannot be written.
    """
    folder = _options.path("folder", folder)
    _options.choice("dtype", dtype, tuple(DTYPES))
    check_free(folder)
    published = published_config(model.config)
    expected = shapes_of(model.config)
    if set(expected) != {name for name, _ in model.named_parameters()}:
        raise ConfigError(
            "the model has adapters besides its own weights: merge it, lora.merge(model)"
        )
    files = {} if tokenizer is None else _tokenizer_files(tokenizer, model.config, chat_template)
    end = None if tokenizer is None else tokenizer.end_of_text
    published |= {"torch_dtype": _NAMES[dtype], "eos_token_id": end, "bos_token_id": None}
    files[CONFIG] = published
    files["generation_config.json"] = {"eos_token_id": end}
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        temporary.mkdir(parents=True)
        for name, content in files.items():
            write_atomic(temporary / name, _text(content).encode())
        _write_weights(temporary / WEIGHTS, model, published["model_type"], DTYPES[dtype])
        temporary.rename(folder)
        flush_folder(folder.parent)
    except OSError as error:
        raise cannot_write(folder, error) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def check_free(folder: Path) -> None:
    """Raise `RunError` if `folder` already exists."""
    if folder.exists() or folder.is_symlink():
        raise RunError(f"{folder} exists: name a folder that is not there yet")


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _write_weights(path: Path, model: Transformer, family: str, dtype: torch.dtype) -> None:
    groups = _groups(model.config, family)
    contents = WeightsHeader()
    for there, (_, shape) in groups.items():
        contents.kinds[there] = (dtype, shape)
    live = {name: parameter.detach() for name, parameter in model.named_parameters()}

    def tensors() -> Iterator[tuple[str, Tensor]]:
        for there in sorted(groups):
            yield there, _joined(live, groups[there][0], dtype)

    write_tensors(path, contents, tensors())


Part = tuple[str, WeightLocation, tuple[int, ...]]
"""Name, place and shape of one of our weights."""


def _groups(
    config: TransformerConfig, family: str
) -> dict[str, tuple[list[Part], tuple[int, ...]]]:
    """The tensors that make up each tensor of the file, and its shape."""
    if family == "gpt2":  # it has all biases: those that the model lacks are written as zeros
        config = dataclasses.replace(config, bias=True, attention_bias=None)
    groups: dict[str, tuple[list[Part], tuple[int, ...]]] = {}
    for name, shape in shapes_of(config).items():
        where = place(family, name)
        there = where.name if where.name.startswith("lm_head") else PREFIX[family] + where.name
        parts, _ = groups.setdefault(there, ([], shape_there(shape, where)))
        parts.append((name, where, shape))
    return groups


def _joined(live: dict[str, Tensor], parts: list[Part], dtype: torch.dtype) -> Tensor:
    """A tensor of the file, of one or several weights, contiguous and on the CPU."""
    found = [
        (live[name] if name in live else torch.zeros(shape)).to("cpu", dtype)
        for name, _, shape in sorted(parts, key=lambda part: part[1].part)
    ]
    whole = found[0] if len(found) == 1 else torch.cat(found)
    return (whole.T if parts[0][1].transposed else whole).contiguous()


def _tokenizer_files(
    tokenizer: Tokenizer, config: TransformerConfig, chat_template: str | None
) -> Json:
    """tokenizer.json and what `transformers` reads beside it; none for ids without a text."""
    if tokenizer.vocab_size > config.vocab_size:
        raise ConfigError(
            f"the tokenizer has {tokenizer.vocab_size:,} ids and the model {config.vocab_size:,}: "
            "give the tokenizer that the model was trained with"
        )
    library = as_library(tokenizer)
    if library is None:
        return {}
    settings: Json = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": config.context,
        "clean_up_tokenization_spaces": False,
    }
    if tokenizer.end_of_text is not None:
        settings["eos_token"] = library.id_to_token(tokenizer.end_of_text)
    if library.token_to_id(_UNKNOWN) is not None:
        settings["unk_token"] = _UNKNOWN
    if chat_template is not None:
        settings["chat_template"] = chat_template
    return {TOKENIZER: library.to_str(pretty=True), "tokenizer_config.json": settings}


def as_library(tokenizer: Tokenizer) -> Any:
    """The same tokenizer as one of the library `tokenizers`: the same ids for the same text, and
    back. None for ids that have no text.

    Raises `MissingDependencyError` where the library is not installed.
    """
    try:
        import tokenizers
    except ImportError:
        raise MissingDependencyError(
            "writing tokenizer.json needs the library tokenizers, which is not installed: "
            "pip install 'trueloop[text]'"
        ) from None
    state = tokenizer.state()
    if state["kind"] == "subwords":
        return tokenizers.Tokenizer.from_str(state["tokenizer"])
    if state["kind"] not in ("char", "byte"):
        return None
    library = _of_bytes() if state["kind"] == "byte" else _of_characters(state["characters"])
    added = [] if tokenizer.end_of_text is None else [_END_OF_TEXT]
    added += [_UNKNOWN] * bool(state.get("unknown"))
    library.add_special_tokens([tokenizers.AddedToken(name, special=True) for name in added])
    assert library.get_vocab_size() == tokenizer.vocab_size
    return library


def _of_characters(points: list[int]) -> Any:
    from tokenizers import Regex, Tokenizer as Library, decoders, models, pre_tokenizers

    vocabulary = {chr(point): number for number, point in enumerate(points)}
    library = Library(models.WordLevel(vocabulary, unk_token=_UNKNOWN))
    library.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    library.decoder = decoders.Fuse()
    return library


def _of_bytes() -> Any:
    from tokenizers import Tokenizer as Library, decoders, models, pre_tokenizers

    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in visible]
    marks = {chr(byte): byte for byte in visible}
    marks |= {chr(_MARKS_FROM + number): byte for number, byte in enumerate(others)}
    library = Library(models.BPE(vocab=marks, merges=[]))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    library.decoder = decoders.ByteLevel()
    return library
