"""One build gives the same bits: any number of threads, any chunking, a file or an array, each layout."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from chunks import batches, memory, random_cuts
from layouts import LAYOUTS

import certifit as cf
from certifit import runtime

MODELS = {
    "least squares": cf.LinearRegression,
    "no intercept": lambda: cf.LinearRegression(fit_intercept=False),
    "ridge": lambda: cf.Ridge(0.2),
    "lasso": lambda: cf.Lasso(0.05),
    "polynomial": lambda: cf.LinearRegression(basis=cf.Polynomial(2)),
}


def bits(model: Any) -> tuple[bytes, ...]:
    """Everything a fit computes, but for the seconds it took."""
    parts = [model.coef_, model.intercept_, model.null_space_, model.condition_, model.certificate_.value]
    parts += [model.certificate_.digits, [row["objective"] for row in model.history_], model.data_["target_sd"]]
    if model.inference_ is not None:
        parts += [model.inference_.inverse, model.inference_.rss, model.inference_.tss]
    return tuple(np.asarray(part, dtype=np.float64).tobytes() for part in parts)


def well(X: Any) -> Any:
    return X


def ill(X: Any) -> Any:
    """Columns so nearly dependent that sums are twofold."""
    return np.column_stack([X[:, :-1], X[:, 0] + 1e-5 * X[:, -1]])


def redundant(X: Any) -> Any:
    return np.column_stack([X, X[:, 0] - 2 * X[:, 1]])


@pytest.mark.parametrize("condition", [well, ill, redundant])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "bool"])
@pytest.mark.slow
def test_threads_and_chunks_do_not_change_a_bit(rng, model, dtype, condition):
    X = condition((rng.normal(size=(700, 4)) * 3 + 1).astype(np.float32 if dtype == "float64" else dtype))
    X = X.astype(dtype if dtype != "float64" else np.float64)
    y, weight = rng.normal(size=700), rng.random(700)
    for block_rows, w in ((3, None), (64, weight)):
        found = set()
        for n_threads in (1, 2, 8):
            with cf.threads(n_threads):
                found.add(bits(MODELS[model]().fit(memory(X, y, w, block_rows=block_rows))))
        cuts = random_cuts(rng, 700)
        found.add(bits(MODELS[model]().fit(batches(X, y, w, block_rows=block_rows, cuts=cuts))))
        if model != "polynomial":  # a map cuts blocks of its own
            assert len(found) == 1
        else:
            assert len({bits(MODELS[model]().fit(memory(X, y, w, block_rows=7)))} | found) == 1


@pytest.mark.parametrize("fill", ["even", "dense rows first"])
@pytest.mark.parametrize("n_columns", [6, 40])
def test_sparse_batches_of_any_size_give_the_same_bits(rng, n_columns, fill):
    n = 4000
    share = np.full(n, 0.05) if fill == "even" else np.where(np.arange(n) < n // 2, 0.6, 0.02)
    X = sp.csr_array(np.where(rng.random((n, n_columns)) < share[:, None], rng.normal(size=(n, n_columns)), 0.0))
    y = rng.normal(size=n)
    whole = cf.LinearRegression().fit(memory(X, y, block_rows=128))
    cut = cf.LinearRegression().fit(batches(X, y, block_rows=128, cuts=random_cuts(rng, n)))
    assert bits(whole) == bits(cut)


@pytest.mark.parametrize("model", MODELS)
def test_a_file_gives_the_bits_of_the_array_it_was_written_from(rng, tmp_path, model):
    X, weight = rng.normal(size=(3000, 3)) * 5 + 2, rng.integers(0, 4, size=3000)
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=3000)
    lines = [",".join(map(repr, row)) for row in np.column_stack([X, y, weight]).tolist()]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["a,b,c,y,w", *lines]))
    scanned = MODELS[model]().fit(cf.scan_csv(path, target="y", weight="w"))
    in_memory = MODELS[model]().fit(X, y, sample_weight=weight)
    assert bits(scanned) == bits(in_memory)
    assert np.array_equal(scanned.predict(cf.scan_csv(path, columns=["a", "b", "c"])), in_memory.predict(X))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("n_rows", [300, 5])
@pytest.mark.slow
def test_the_layout_does_not_change_a_bit(rng, n_rows, model, layout):
    X, y = rng.normal(size=(n_rows, 7)) * 10 + 3, rng.normal(size=n_rows)
    plain, other = MODELS[model]().fit(X, y), MODELS[model]().fit(LAYOUTS[layout](X), y)
    assert bits(plain) == bits(other)
    assert np.array_equal(plain.predict(X), other.predict(LAYOUTS[layout](X)))


@pytest.mark.parametrize("model", MODELS)
def test_few_rows_give_the_same_bits_for_any_number_of_threads(rng, model):
    X, y = rng.normal(size=(30, 90)), rng.normal(size=30)
    found = set()
    for n_threads in (1, 2, 8):
        with cf.threads(n_threads):
            found.add(bits(MODELS[model]().fit(X, y)))
    assert len(found) == 1


def test_a_prediction_does_not_depend_on_the_rows_around_it(rng):
    X, y = rng.normal(size=(500, 6)), rng.normal(size=500)
    model = cf.LinearRegression().fit(X, y)
    expected = model.predict(X)
    for n_threads in (1, 2, 8):
        with cf.threads(n_threads):
            assert np.array_equal(model.predict(X), expected)
    for begin, end in ((0, 1), (3, 70), (499, 500)):
        assert np.array_equal(model.predict(X[begin:end]), expected[begin:end])
    assert np.array_equal(model.predict(batches(X, block_rows=2, cuts=[1, 99])), expected)


@pytest.mark.skipif("CERTIFIT_BUILD" in os.environ, reason="runs in the other build already")
@pytest.mark.slow
def test_the_other_build_keeps_the_same_promises():
    """These claims and NIST's again, in the build that this processor would not take by itself."""
    other = "baseline" if runtime.build == "avx2" else "avx2"
    if other == "avx2" and not import_module("certifit._core_baseline").cpu_has_avx2():
        pytest.skip("this processor has no AVX2 and FMA")
    here = Path(__file__).parent
    files = [here / name for name in ("test_same_bits.py", "least_squares/test_nist.py", "least_squares/test_rank.py")]
    files += [here / "least_squares/test_least_squares_certificate.py"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:xdist", "-x", *map(str, files)],
        env=os.environ | {"CERTIFIT_BUILD": other}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-3000:]
