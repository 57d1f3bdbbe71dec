"""Small made-up data sets for the scripts of watch_public.py, written where a script reads them."""

from __future__ import annotations

import csv
import math
import random
import wave
from pathlib import Path
from typing import Any


def write_data(folder: Path, kind: str, path: str, **options: Any) -> None:
    """Write the data set of a kind at a path below a folder."""
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    KINDS[kind](target, **options)


def text_file(path: Path, lines: int = 400, seed: int = 0, words: int = 8) -> None:
    """Sentences of a small grammar, one on each line."""
    draw = random.Random(seed)
    nouns = "cat dog bird house tree river man child book ship".split()
    verbs = "sees finds likes leaves hears knows".split()
    kinds = "old small red quiet green happy".split()

    def sentence() -> str:
        said: list[str] = []
        while len(said) < words:
            said += ["the", draw.choice(kinds), draw.choice(nouns), draw.choice(verbs)]
        return " ".join(said[:words]) + " ."

    path.write_text("".join(f"{sentence()}\n" for _ in range(lines)))


def image_folder(
    path: Path,
    classes: int = 2,
    each: int = 16,
    size: int = 32,
    flat: bool = False,
    seed: int = 0,
    suffix: str = ".png",
) -> None:
    """Images of one pattern for each class, with noise: `<class>/<number>.png`, or all in one
    folder."""
    import numpy as np
    from PIL import Image

    draw = np.random.default_rng(seed)
    for k in range(classes):
        pattern = np.random.default_rng(k).random((size, size, 3))
        folder = path if flat else path / f"class{k}"
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(each):
            values = 0.6 * np.roll(pattern, number, 0) + 0.4 * draw.random(pattern.shape)
            Image.fromarray((255 * values).astype(np.uint8)).save(
                folder / f"{k}_{number:04}{suffix}"
            )


def table(
    path: Path, rows: int = 400, columns: str = "x0,x1,x2,x3", target: str = "y", classes: int = 0,
    seed: int = 0, header: bool = True,
) -> None:  # fmt: skip
    """Numbers, and a target that is a function of them: a class if `classes`."""
    draw = random.Random(seed)
    names = columns.split(",")
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        if header:
            writer.writerow([*names, target])
        for _ in range(rows):
            values = [draw.gauss(0, 1) for _ in names]
            score = sum(value * math.cos(k) for k, value in enumerate(values))
            found = int(abs(score) * 2) % classes if classes else round(score, 4)
            writer.writerow([*(round(value, 4) for value in values), found])


def series(path: Path, rows: int = 400, columns: str = "Date,Open,High,Low,Close,Volume") -> None:
    """Prices, day after day: a slow wave with noise. The first column is the date."""
    import datetime

    draw, day = random.Random(0), datetime.date(2020, 1, 1)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns.split(","))
        for k in range(rows):
            price = 100 + 20 * math.sin(k / 25) + draw.gauss(0, 1)
            rest = [round(price + draw.gauss(0, 0.5), 2) for _ in columns.split(",")[1:]]
            writer.writerow([day + datetime.timedelta(k), *rest])


def waves(path: Path, files: int = 8, seconds: float = 1.0, rate: int = 22050) -> None:
    """Sums of tones as 16-bit wave files."""
    path.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        draw = random.Random(number)
        tones = [(draw.uniform(80, 2000), draw.uniform(0.05, 0.2)) for _ in range(4)]
        with wave.open(str(path / f"{number:03}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(rate)
            frames = bytearray()
            for k in range(int(seconds * rate)):
                value = sum(loud * math.sin(2 * math.pi * f * k / rate) for f, loud in tones)
                frames += int(32767 * max(-1.0, min(1.0, value))).to_bytes(2, "little", signed=True)
            file.writeframes(bytes(frames))


def tokens(path: Path, count: int = 20000, vocabulary: int = 60) -> None:
    """`train.bin` and `val.bin` of 16-bit tokens, and `meta.pkl` with the vocabulary's size."""
    import pickle

    import numpy as np

    path.mkdir(parents=True, exist_ok=True)
    for seed, name in enumerate(("train", "val")):
        jumps = np.random.default_rng(seed).integers(1, 4, count)
        (np.cumsum(jumps) % vocabulary).astype(np.uint16).tofile(path / f"{name}.bin")
    (path / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": vocabulary}))


def citations(path: Path, nodes: int = 1000, classes: int = 7, words: int = 100) -> None:
    """A graph in the files of Planetoid's Cora: papers of one subject cite each other."""
    import pickle

    import numpy as np
    from scipy.sparse import csr_matrix

    path.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(0)
    subject = draw.integers(0, classes, nodes)
    favoured = draw.random((classes, words)) < 0.2
    features = draw.random((nodes, words)) < np.where(favoured[subject], 0.3, 0.02)
    one_hot = np.eye(classes, dtype=np.int32)[subject]
    links: dict[int, list[int]] = {node: [] for node in range(nodes)}
    for node in range(nodes):
        same = np.flatnonzero(subject == subject[node])
        for other in draw.choice(same, 3):
            links[node].append(int(other))
            links[int(other)].append(node)
    train, known = 20 * classes, nodes - 300
    matrix = csr_matrix(features.astype(np.float32))
    parts = {
        "x": matrix[:train], "allx": matrix[:known], "tx": matrix[known:],
        "y": one_hot[:train], "ally": one_hot[:known], "ty": one_hot[known:], "graph": links,
    }  # fmt: skip
    for name, content in parts.items():
        (path / f"ind.cora.{name}").write_bytes(pickle.dumps(content))
    (path / "ind.cora.test.index").write_text("".join(f"{k}\n" for k in range(known, nodes)))


def molecules(path: Path, name: str, graphs: int = 200) -> None:
    """Graphs of two classes in the files of the TU data sets: rings, and rings with chords."""
    draw = random.Random(0)
    path.mkdir(parents=True, exist_ok=True)
    edges, owner, label, kind, first = [], [], [], [], 1
    for graph in range(graphs):
        count, has_chords = draw.randint(8, 20), graph % 2
        ring = [(k, (k + 1) % count) for k in range(count)]
        chords = [(k, (k + count // 2) % count) for k in range(0, count // 2, 2)]
        for a, b in ring + (chords if has_chords else []):
            edges += [(first + a, first + b), (first + b, first + a)]
        owner += [graph + 1] * count
        kind += [draw.randint(0, 3) for _ in range(count)]
        label.append(has_chords)
        first += count
    files = {
        "A": [f"{a}, {b}" for a, b in edges], "graph_indicator": owner, "graph_labels": label,
        "node_labels": kind,
    }  # fmt: skip
    for part, rows in files.items():
        (path / f"{name}_{part}.txt").write_text("".join(f"{row}\n" for row in rows))


def ratings(path: Path, users: int = 60, items: int = 120, each: int = 40) -> None:
    """MovieLens's `ratings.dat`: user::item::rating::time."""
    draw = random.Random(0)
    rows = []
    for user in range(1, users + 1):
        for number, item in enumerate(draw.sample(range(1, items + 1), each)):
            stars = 1 + (user * 7 + item * 3) % 5
            rows.append(f"{user}::{item}::{stars}::{1_000_000 + number}\n")
    path.write_text("".join(rows))


def sentence_pairs(path: Path, rows: int = 160) -> None:
    """JSON lines in the form of GLUE's MRPC: two sentences, and whether they are the same."""
    import json

    draw = random.Random(0)
    words = "cat dog bird house tree river man child book ship".split()
    with path.open("w") as file:
        for number in range(rows):
            one = draw.choices(words, k=6)
            other = one if number % 2 else draw.choices(words, k=6)
            said = {"sentence1": " ".join(one), "sentence2": " ".join(other)}
            file.write(json.dumps({**said, "label": number % 2, "idx": number}) + "\n")


def tiny_model(path: Path, family: str = "bert", hidden: int = 32, words: int = 60) -> None:
    """A transformers model with random weights, and its tokenizer, in a folder."""
    import transformers

    path.mkdir(parents=True, exist_ok=True)
    known = "the cat dog bird house tree river man child book ship a is to and of it in on".split()
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *known]
    vocabulary += [f"w{k}" for k in range(words - len(vocabulary))]
    (path / "vocab.txt").write_text("".join(f"{word}\n" for word in vocabulary))
    transformers.set_seed(0)
    shape = {"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 2 * hidden}
    if family == "bert":
        config = transformers.BertConfig(vocab_size=words, hidden_size=hidden, **shape)
        transformers.BertForSequenceClassification(config).save_pretrained(path)
    else:
        config = transformers.LlamaConfig(vocab_size=words, hidden_size=hidden, **shape)
        transformers.LlamaForCausalLM(config).save_pretrained(path)
    tokenizer = transformers.BertTokenizerFast(vocab_file=str(path / "vocab.txt"))
    tokenizer.eos_token = "[SEP]"
    tokenizer.save_pretrained(path)


def array(path: Path, shape: list[int]) -> None:
    """A `.npy` of numbers between 0 and 1; along the first axis, one pattern for each entry."""
    import numpy as np

    draw = np.random.default_rng(0)
    patterns = draw.random((shape[0], 1, *shape[2:]))
    np.save(path, (0.7 * patterns + 0.3 * draw.random(shape)).astype(np.float32))


def written(path: Path, text: str) -> None:
    """A file as it stands in the list."""
    path.write_text(text)


def folder(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)


KINDS = {
    "text": text_file,
    "images": image_folder,
    "table": table,
    "series": series,
    "waves": waves,
    "tokens": tokens,
    "citations": citations,
    "molecules": molecules,
    "ratings": ratings,
    "sentence pairs": sentence_pairs,
    "tiny model": tiny_model,
    "array": array,
    "file": written,
    "folder": folder,
}
