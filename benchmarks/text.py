"""Texts to sparse columns against scikit-learn: the same matrix, and how much sooner.

    python -m benchmarks.text [--data shared/data] [--repeats 3] [--times 10]

sms_spam (5,574 messages) and subjectivity (10,000 sentences), and subjectivity `--times` over. Vocabularies against
CountVectorizer(binary=True).fit_transform, 2^18 hashed columns against HashingVectorizer (counts, no norm). Runs take
turns; the smallest wall time of each counts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

from certifit.maps import TextBinarizer
from certifit.runtime import n_threads, threads

N_HASH = 1 << 18
TASKS: dict[str, tuple[dict[str, Any], Callable[[], Any]]] = {
    "words": ({}, lambda: CountVectorizer(binary=True)),
    "1 and 2 words": ({"ngram_range": (1, 2)}, lambda: CountVectorizer(binary=True, ngram_range=(1, 2))),
    "1 and 2 words, min_df=5": (
        {"ngram_range": (1, 2), "min_df": 5},
        lambda: CountVectorizer(binary=True, ngram_range=(1, 2), min_df=5),
    ),
    "words, hashed": (
        {"n_hash": N_HASH, "binary": False},
        lambda: HashingVectorizer(n_features=N_HASH, norm=None, alternate_sign=False),
    ),
    "1 and 2 words, hashed": (
        {"n_hash": N_HASH, "binary": False, "ngram_range": (1, 2)},
        lambda: HashingVectorizer(n_features=N_HASH, norm=None, alternate_sign=False, ngram_range=(1, 2)),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--times", type=int, default=10)
    options = parser.parse_args()
    if not options.data.is_dir():
        raise SystemExit(f"no folder {options.data} with the real data sets: give --data")
    sms, sentences = (texts_of(options.data, name) for name in ("sms_spam", "subjectivity"))
    print(f"{n_threads()} processors\n")
    print("| texts | terms | scikit-learn | certifit, 1 thread | certifit | transform | columns | same |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    many = {"sms_spam": sms, "subjectivity": sentences, f"subjectivity x {options.times}": sentences * options.times}
    for name, texts in many.items():
        for task, (settings, rival) in TASKS.items():
            compare(f"{name} ({len(texts):,})", task, texts, settings, rival, options.repeats)


def texts_of(folder: Path, name: str) -> list[str]:
    found: list[str] = pq.read_table(folder / name / f"{name}.parquet").column("text").to_pylist()
    return found


def compare(
    name: str, task: str, texts: list[str], settings: dict[str, Any], rival: Callable[[], Any], repeats: int
) -> None:
    """One line of the table; ratios are to scikit-learn, which has one thread."""
    fitted = TextBinarizer(**settings).fit(texts)

    def one_thread() -> Any:
        with threads(1):
            return TextBinarizer(**settings).fit_transform(texts)

    runs: dict[str, Callable[[], Any]] = {
        "rival": lambda: rival().fit_transform(texts),
        "one": one_thread,
        "all": lambda: TextBinarizer(**settings).fit_transform(texts),
        "map": lambda: fitted.transform(texts),
    }
    best = dict.fromkeys(runs, np.inf)
    made: dict[str, Any] = {}
    for _ in range(repeats):
        for key, run in runs.items():
            begin = time.perf_counter()
            made[key] = run()
            best[key] = min(best[key], time.perf_counter() - begin)
    is_same = all((made["rival"] != made[key]).nnz == 0 for key in ("one", "all", "map"))
    print(
        f"| {name} | {task} | {best['rival']:.3f} s | {best['one']:.4f} s ({best['rival'] / best['one']:.1f}x) | "
        f"{best['all']:.4f} s ({best['rival'] / best['all']:.1f}x) | {best['map']:.4f} s | "
        f"{made['all'].shape[1]:,} | {'yes' if is_same else 'NO'} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
