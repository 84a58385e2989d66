"""Every model has the same bits whatever the threads, the chunks and the place of its rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from chunks import batches, memory, random_cuts
from learners import LEARNERS, Row
from sklearn.base import clone

import certifit as cf
from certifit.models.adapter import learner_of
from certifit.models.learner import Keeps
from tests.models.class_places import places

N_ROWS, N_COLUMNS = 4500, 40  # more than a block
FEW = (900, 6)  # rows and columns of models that keep all rows: they gather them first, whatever the blocks
EVERY = pytest.mark.parametrize("key", LEARNERS)
CLOCK = ("seconds", "elapsed")


def plain(value: Any) -> Any:
    """A value of a fit as what can be compared: arrays as bytes, objects as what they hold, the clock left out."""
    if isinstance(value, np.ndarray | np.generic):
        return str(value.dtype), np.shape(value), value.tolist() if value.dtype == object else value.tobytes()
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items() if name not in CLOCK}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return plain(vars(value)) if type(value).__module__.startswith("certifit") and hasattr(value, "__dict__") else value


def bits(model: Any) -> dict[str, Any]:
    """All that a fit leaves."""
    return {name: plain(value) for name, value in vars(model).items() if name.endswith("_")}


def fit(row: Row, *rows: Any) -> Any:
    model = clone(row.model)
    if hasattr(model, "max_iter"):
        model.set_params(max_iter=20)  # bits differ in the first step, or never
    with warnings.catch_warnings(action="ignore"):
        return model.fit(*rows)


@EVERY
@pytest.mark.slow
def test_threads_and_chunks_do_not_change_a_bit(rng, key):
    row = LEARNERS[key]
    X, y = row.rows(700)
    y = (y == "yes").astype(float) if row.kind == "clf" else y
    cut = random_cuts(rng, 700)
    found = [bits(fit(row, batches(X, y, None, block_rows=64, cuts=cut)))]
    for n_threads in (1, 2, 8):
        with cf.threads(n_threads):
            found.append(bits(fit(row, memory(X, y, None, block_rows=64))))
    for other in found[1:]:
        assert other == found[0]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: Any) -> Callable[..., dict[str, Any]]:
    """sources(key) -> the rows of a model in memory and in every other place; models of one kind share their files."""

    @cache
    def of_kind(kind: str, flags: frozenset[str], size: tuple[int, int]) -> dict[str, Any]:
        frame, target = Row(None, kind, flags).frame(*size)
        folder = tmp_path_factory.mktemp(kind)
        return {"memory": cf.from_arrow(frame, target=target)} | dict(places(frame, target, folder))

    def of_key(key: str) -> dict[str, Any]:
        row = LEARNERS[key]
        keeps_rows = learner_of(row.model).keeps is Keeps.ALL_ROWS
        return of_kind(row.kind, row.flags & {"counts"}, FEW if keeps_rows else (N_ROWS, N_COLUMNS))

    return of_key


@EVERY
@pytest.mark.slow
def test_every_place_has_the_bits_of_memory(key, sources):
    row, rows = LEARNERS[key], sources(key)
    memory_rows = rows["memory"]
    model = fit(row, memory_rows)
    answers = row.answers(model, memory_rows)
    with warnings.catch_warnings(action="ignore"):
        proof = plain(model.certify(memory_rows))
    for place, source in rows.items():
        if source is memory_rows:
            continue
        other = fit(row, source)
        assert bits(other) == bits(model), place
        assert np.array_equal(row.answers(other, source), answers), place
        with warnings.catch_warnings(action="ignore"):
            assert plain(other.certify(source)) == proof, place
