"""Models inside a model file: each is a container of its own, and what all of them have alike stands once.

    children.count    how many there are                 children     the containers, one after the other
    children.shared   metadata that all of them have     child_ends   where each ends
    shared.NAME       an array that all of them have

A container holds only the metadata and the arrays in which its model differs from the others. Every limit of a plain
file holds for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from certifit.modelfile import canonical, container
from certifit.modelfile.container import MAX_FILE, ModelFileError
from certifit.models.record import Arrays, Check, Metadata, Spec, deep_merge

MOST_MODELS = 1000
MOST_LEVELS = 4
MOST_TEXT = 64 * 1024**2  # of the shared metadata, once per model
SHARED = "shared."
CHILDREN: Mapping[str, Spec] = {
    "count": Check(
        f"an integer from 1 to {MOST_MODELS}", lambda value: type(value) is int and 1 <= value <= MOST_MODELS
    ),
    "shared": Check("an object", lambda value: isinstance(value, dict)),
}
Stored = tuple[Metadata, Arrays]


def fold(models: Sequence[Stored]) -> Stored:
    """The entry "children" and the arrays of models, given the metadata and arrays of each."""
    if not 1 <= len(models) <= MOST_MODELS:
        raise ModelFileError(f"it is made of {len(models):,} models, and a file has room for 1 to {MOST_MODELS:,}.")
    shared = _alike([metadata for metadata, _ in models])
    names = _alike_arrays([arrays for _, arrays in models])
    parts = [
        container.to_bytes(_without(metadata, shared), {name: arrays[name] for name in arrays.keys() - names})
        for metadata, arrays in models
    ]
    first = models[0][1]
    return {"count": len(models), "shared": shared}, {
        **{SHARED + name: first[name] for name in names},
        "child_ends": np.cumsum([len(data) for data in parts], dtype=np.int64),
        "children": np.frombuffer(b"".join(parts), dtype=np.uint8),
    }


def is_nested(name: str) -> bool:
    """Whether an array belongs to the models inside."""
    return name.startswith(SHARED) or name in ("child_ends", "children")


def unfold(children: Metadata, arrays: Arrays) -> list[Stored]:
    """Metadata and arrays of every model inside, from the checked entry "children" and its arrays."""
    shared = {name.removeprefix(SHARED): array for name, array in arrays.items() if name.startswith(SHARED)}
    _refuse_growth(children, shared.values())
    differences = [container.from_bytes(data) for data in containers(children["count"], arrays)]
    models = [
        (
            deep_merge(children["shared"], metadata),
            {name: array.copy() for name, array in shared.items()} | child_arrays,
        )
        for metadata, child_arrays in differences
    ]
    # One model has one file: what is alike stands nowhere else.
    is_shortest = (
        canonical.encode(_alike([metadata for metadata, _ in models])) == canonical.encode(children["shared"])
        and _alike_arrays([child_arrays for _, child_arrays in models]) == shared.keys()
        and not any(shared.keys() & child_arrays.keys() for _, child_arrays in differences)
        and all(
            canonical.encode(_without(whole, children["shared"])) == canonical.encode(metadata)
            for (whole, _), (metadata, _) in zip(models, differences, strict=True)
        )
    )
    if not is_shortest:
        raise ModelFileError("the models in it repeat what all of them share, or do not share what is equal.")
    return models


def refuse_deep(level: int) -> None:
    """Refuse models that are nested deeper than a file may be; a model that holds itself is."""
    if level >= MOST_LEVELS:
        raise ModelFileError(f"models inside models are nested deeper than {MOST_LEVELS} levels.")


def refuse_many(n_models: int, n_bytes: int) -> None:
    """Refuse more models than a file may hold on all levels, or more bytes than they may take once they are apart."""
    if n_models > MOST_MODELS:
        raise ModelFileError(f"it holds more than {MOST_MODELS:,} models.")
    if n_bytes > MAX_FILE:
        raise ModelFileError(f"its models take more than {MAX_FILE:,} bytes.")


def _refuse_growth(children: Metadata, shared: Iterable[np.ndarray]) -> None:
    count = children["count"]
    if count * len(canonical.encode(children["shared"])) > MOST_TEXT:
        raise ModelFileError(f"its {count:,} models share names and settings of more than {MOST_TEXT:,} bytes in all.")
    refuse_many(count, count * sum(array.nbytes for array in shared))


def containers(count: int, arrays: Arrays) -> list[bytes]:
    """The bytes of every container: they touch each other and are all there is."""
    ends, data = arrays.get("child_ends", np.zeros(0)), arrays.get("children", np.zeros(0))
    is_bytes = ends.dtype == np.int64 and data.dtype == np.uint8 and ends.shape == (count,) and data.ndim == 1
    begins = np.concatenate([np.zeros(1, dtype=np.int64), ends]) if is_bytes else ends
    if not is_bytes or (begins[1:] < begins[:-1]).any() or begins[-1] != data.size:
        raise ModelFileError(f"its {count:,} models must follow each other and fill {data.size:,} bytes.")
    return [data[begin:end].tobytes() for begin, end in zip(begins[:-1].tolist(), ends.tolist(), strict=True)]


def _alike(values: Sequence[Metadata]) -> Metadata:
    """The entries that are equal in all of these objects, objects inside them entry by entry."""
    first, *others = values
    alike: Metadata = {}
    for key, value in first.items():
        if not all(key in other for other in others):
            continue
        if all(isinstance(item[key], dict) for item in values):
            alike[key] = _alike([item[key] for item in values])
        elif all(repr(value) == repr(other[key]) for other in others):  # tells 1, 1.0 and true apart
            alike[key] = value
    return alike


def _without(value: Metadata, shared: Metadata) -> Metadata:
    """What an object has beyond the shared entries."""
    beyond_shared: Metadata = {}
    for key, item in value.items():
        if key not in shared:
            beyond_shared[key] = item
        elif isinstance(item, dict) and (beyond := _without(item, shared[key])):
            beyond_shared[key] = beyond
    return beyond_shared


def _alike_arrays(values: Sequence[Arrays]) -> set[str]:
    """Names of the arrays that are equal in all models, to the bit."""
    first, *others = values
    return {
        name
        for name, array in first.items()
        if all(name in other and _is_equal(array, other[name]) for other in others)
    }


def _is_equal(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
