"""Texts to sparse columns against scikit-learn: the same matrix, wall and CPU seconds.

    python -m benchmarks.text                    # all, some minutes
    python -m benchmarks.text --quick            # the two data sets as they are
    python -m benchmarks.text --out benchmarks/results/text.jsonl

sms_spam (5,574 messages), subjectivity (10,000 sentences), and subjectivity ten times over, from shared/data beside
the project folder. Vocabularies against CountVectorizer(binary=True), 2^18 hashed columns against HashingVectorizer
(counts, no norm). Runs take turns and the minimum counts. scikit-learn has one thread, and so has "one thread";
scikit-learn-intelex has no vectoriser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

from benchmarks.turns import Compared, compare, run
from certifit.maps import TextBinarizer
from certifit.runtime import threads

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
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


def vectorise(quick: bool) -> Iterator[Compared]:
    """Fit and transform, on all threads and on one, and transform alone."""
    sms, sentences = (texts_of(name) for name in ("sms_spam", "subjectivity"))
    many = {"sms_spam": sms, "subjectivity": sentences} | ({} if quick else {"subjectivity x 10": 10 * sentences})
    for name, texts in many.items():
        for task, (settings, rival) in TASKS.items():
            yield from compared(f"{name}, {len(texts):,} texts", task, texts, settings, rival)


def compared(
    size: str, task: str, texts: list[str], settings: dict[str, Any], rival: Callable[[], Any]
) -> Iterator[Compared]:
    """A line each; what differs is the number of entries."""

    def one_thread() -> Any:
        with threads(1):
            return TextBinarizer(**settings).fit_transform(texts)

    fitted, peer = TextBinarizer(**settings).fit(texts), rival().fit(texts)
    name = f"scikit-learn {type(peer).__name__}"
    whole = {name: lambda: rival().fit_transform(texts)}
    yield from compare(task, size, lambda: TextBinarizer(**settings).fit_transform(texts), whole, entries_apart, shape)
    yield from compare(f"{task}, one thread", size, one_thread, whole, entries_apart, shape)
    alone = {name: lambda: peer.transform(texts)}
    yield from compare(f"{task}, transform", size, lambda: fitted.transform(texts), alone, entries_apart, shape)


def entries_apart(ours: Any, theirs: Any) -> float:
    """How many entries differ."""
    return float((ours != theirs).nnz) if ours.shape == theirs.shape else float("inf")


def shape(matrix: Any) -> str:
    """For the eye."""
    return f"{matrix.shape[1]:,} columns"


def texts_of(name: str) -> list[str]:
    """The texts of a data set in the shared folder."""
    file = DATA / name / f"{name}.parquet"
    if not file.is_file():
        raise SystemExit(f"no file {file}: shared/data belongs beside the project folder")
    found: list[str] = pq.read_table(file).column("text").to_pylist()
    return found


if __name__ == "__main__":
    run(__doc__, {"vectorise": vectorise})
