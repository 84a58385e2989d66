"""Damages model files at random and reads them: a fresh file of every kind, and the kept files of older versions.

    PYTHONPATH=tests python tests/modelfile/fuzz.py --mutants 1000000 --seed 0

A blind mutant (bytes changed, digests left) must be refused. A sealed mutant (content changed, digests made
right again) must be refused, or be a model that predicts and is written back as the same content. Nothing may
raise another error than ModelFileError, warn, or take longer than a second.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import random
import struct
import time
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from forge import dumps, hexed, metadata, seal, split, with_child
from samples import letters, samples, table

from certifit.modelfile import ModelFileError
from certifit.modelfile.files import from_bytes, to_bytes
from certifit.models.table import PUBLIC

HANG = 20.0  # seconds of the processor until a file counts as one that is never read; no measure of speed
HOSTILE_FLOATS = [0.0, -0.0, 1.0, -1.0, 1e308, -1e308, 5e-324, float("inf"), float("-inf"), float("nan")]
HOSTILE_INTEGERS = [0, 1, 2, 3, 6, 7, -1, -(2**63), 2**31, 2**62, 2**63 - 1]
HOSTILE_VALUES: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2**31,
        2**63 - 1,
        -(2**63),
        2**64,
        1.5,
        "",
        "x",
        "nan",
        "\x1b[31m",
        "os.system",
    ),
    *([], [0], [[]], {}, {"hex": "nan"}, {"hex": "inf"}, {"hex": "-inf"}, {"hex": 1}, {"a": 1}),
    *(hexed(number) for number in HOSTILE_FLOATS[:7]),
]


TABLE = pd.concat([table(), letters()], axis=1)


def use(model: Any) -> Any:
    """What a model does with rows."""
    return getattr(model, "predict_log_proba", None) or getattr(model, "predict", None) or model.transform


def blind(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """Bytes flipped, set, cut, repeated or mixed with another file."""
    damaged = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        start = rng.randrange(len(damaged) + 1)
        end = min(len(damaged), start + rng.choice([1, 1, 2, 8, 64]))
        kind = rng.randrange(6)
        if kind == 0 and start < len(damaged):
            damaged[start] ^= 1 << rng.randrange(8)
        elif kind == 1:
            damaged[start:end] = rng.randbytes(end - start)
        elif kind == 2:
            del damaged[start:end]
        elif kind == 3:
            damaged[start:start] = damaged[start:end]
        elif kind == 4:
            del damaged[start:]
        else:
            damaged[start:] = rng.choice(others)[start:]
        if not damaged:
            break
    return bytes(damaged)


def sealed(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """Another number, another piece of metadata or another array table, under right digests."""
    table, payload = split(data)
    for _ in range(rng.choice([1, 1, 2])):
        kind = rng.randrange(4)
        if kind == 0 and payload:
            payload = change_number(payload, rng)
        elif kind == 1:
            text = json.loads(table["__metadata__"]["certifit"])
            table["__metadata__"]["certifit"] = dumps(change_tree(text, rng))
        elif kind == 2:
            entries = table.pop("__metadata__")
            table = {**change_tree(table, rng), "__metadata__": entries}
        else:
            payload = split(rng.choice(others))[1]
    return seal(table, payload)


def nested(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """Another model inside a model, under right digests."""
    return with_child(data, rng.randrange(1000), lambda child: sealed(child, rng, others))


def change_number(payload: bytes, rng: random.Random) -> bytes:
    """Another float, integer or byte."""
    if rng.random() < 0.2:
        at = rng.randrange(len(payload))
        return payload[:at] + rng.randbytes(1) + payload[at + 1 :]
    at = 8 * rng.randrange(len(payload) // 8) if len(payload) >= 8 else 0
    number = struct.pack("<d", rng.choice([*HOSTILE_FLOATS, rng.gauss(0, 1)]))
    if rng.random() < 0.5:
        number = struct.pack("<q", rng.choice([*HOSTILE_INTEGERS, rng.randrange(40)]))
    return payload[:at] + number + payload[at + 8 :]


def change_tree(tree: Any, rng: random.Random) -> Any:
    """The tree with one node replaced, removed, repeated or added."""
    tree = copy.deepcopy(tree)
    node = tree
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return tree
        key = rng.choice(keys)
        if isinstance(node[key], dict | list) and rng.random() < 0.8:
            node = node[key]
            continue
        kind = rng.randrange(4)
        if kind == 0:
            del node[key]
        elif kind == 1 and isinstance(node, dict):
            node[rng.choice(["extra", "__class__", "../x", "coef", key + "2"])] = copy.deepcopy(node[key])
        elif kind == 1:
            node.append(copy.deepcopy(node[key]))
        else:
            node[key] = rng.choice([*HOSTILE_VALUES, node[rng.choice(keys)]])
        return tree


def outcome(originals: list[bytes], mutant: bytes, is_blind: bool) -> str:
    """What became of a mutant; an AssertionError if it should not have."""
    start = time.process_time()  # other work on the machine is not ours
    try:
        with warnings.catch_warnings(action="error"):
            model = from_bytes(mutant)
    except ModelFileError as error:
        result = "refused"
        assert str(error).isprintable(), "the message holds control characters"
    else:
        result = "same" if mutant in originals else "sound"
        assert result == "same" or not is_blind, "damaged bytes were accepted"
        assert content(to_bytes(model)) == content(mutant), "the model is written back as another one"
        # A sentence of the model is fine, such as an overflow far from the training range.
        quiet = warnings.catch_warnings(action="ignore")
        with quiet, np.errstate(all="ignore"), contextlib.suppress(ValueError, TypeError):
            rows = np.ones((2, model.n_features_in_)) if model.encoder_ is None else TABLE.head(2)
            assert use(model)(rows).shape[0] == 2
    assert time.process_time() - start < HANG, "it took too long"
    return result


def content(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """All that a file says, but for the version that wrote it and its history, whose old forms are read as today's."""
    table, payload = split(data)
    said = {key: value for key, value in metadata(data).items() if key not in ("library", "history", "history_more")}
    table.pop("__metadata__")
    arrays = {
        name: (entry["dtype"], entry["shape"], payload[slice(*entry["data_offsets"])])
        for name, entry in table.items()
        if name.partition(".")[0] != "history"
    }
    return arrays, said


@cache
def files() -> list[bytes]:
    """One file of every sample, and every kept file. Together they hold every kind of model that a file can."""
    kept = sorted((Path(__file__).parent / "files").glob("*.certifit"))
    every = [*(to_bytes(sample.model) for sample in samples().values()), *(path.read_bytes() for path in kept)]
    missing = PUBLIC.keys() - {metadata(data)["estimator"] for data in every}
    assert kept and not missing, f"no file holds a model of {missing}"
    return every


def run(n_mutants: int, seed: int, name: str | None = None) -> Counter[str]:
    """Outcomes of `n_mutants` mutants of one sample, or of all files."""
    originals = files()
    chosen = originals if name is None else [to_bytes(samples()[name].model)]
    counts: Counter[str] = Counter()
    kinds: list[Callable[[bytes, random.Random, list[bytes]], bytes]] = [blind, sealed]
    for i in range(n_mutants):
        rng = random.Random(f"{seed}/{i}")
        data = rng.choice(chosen)
        mutate = rng.choice([*kinds, nested] if "children" in metadata(data) else kinds)
        mutant = mutate(data, rng, originals)
        try:
            counts[f"{mutate.__name__} {outcome(originals, mutant, mutate is blind)}"] += 1
        except BaseException as error:
            error.add_note(f"seed {seed}, mutant {i}, {mutate.__name__}: {mutant!r}")
            raise
    return counts


def main() -> None:
    """Read the command line and print the counts."""
    parser = argparse.ArgumentParser(description="Read damaged model files.")
    parser.add_argument("--mutants", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts = run(options.mutants, options.seed)
    print(", ".join(f"{name}: {counts[name]}" for name in sorted(counts)))


if __name__ == "__main__":
    main()
