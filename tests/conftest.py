"""Seeds, shared data, the builds of the compiled core."""

from __future__ import annotations

import csv
import json
import os
import signal
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

# One BLAS thread per test process, unless the caller says otherwise: processes that share the cores lose most of their
# time to BLAS threads that wait for each other. The core's own threads are not concerned.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest

SEEDS = os.environ.get("CERTIFIT_TEST_SEED", "0")


def pytest_configure() -> None:
    """Tests of Ctrl-C need the signal; a shell makes processes that it starts in the background ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# What makes a test slow by itself: real data, a process, the command line, scikit-learn's checks, whole pages.
SLOW_FIXTURES = {"shared_data", "cli", "shell", "cluster", "battery", "check"}
SLOW_FOLDERS = {"benchmarks", "cli", "hunt", "report"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The mark `slow` on every test with such a fixture or in such a folder; others carry it where they stand."""
    for item in items:
        if SLOW_FIXTURES.intersection(getattr(item, "fixturenames", ())) or item.path.parent.name in SLOW_FOLDERS:
            item.add_marker(pytest.mark.slow)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`seed` takes the values of CERTIFIT_TEST_SEED: a number, or "all" for 0 .. 9."""
    if "seed" in metafunc.fixturenames:
        seeds = range(10) if SEEDS == "all" else [int(SEEDS)]
        metafunc.parametrize("seed", seeds, ids=[f"seed{seed}" for seed in seeds])


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets beside the project folder."""
    project = Path(__file__).resolve().parents[1]
    folder = project.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the folder shared/data with the real data sets is not beside the project folder")
    return folder


@pytest.fixture(scope="session")
def nist(shared_data: Path) -> Callable[[str], tuple[Any, Any, dict[str, Any]]]:
    """read(name) -> X in raw powers, y and the certified values of a NIST linear set."""
    folder = shared_data / "nist"
    certified = json.loads((folder / "certified.json").read_text())

    def read(name: str) -> tuple[Any, Any, dict[str, Any]]:
        columns = _columns(folder / f"{name}.csv")
        y, facts = columns.pop("y"), certified[name]
        X = np.column_stack(list(columns.values()))
        if facts["kind"] == "poly":
            X = np.column_stack([X[:, 0] ** power for power in range(1, facts["degree_or_p"] + 1)])
        return X, y, facts

    return read


@pytest.fixture(scope="session")
def nist_univariate(shared_data: Path) -> Callable[[str], tuple[Any, dict[str, Any]]]:
    """read(name) -> y and the certified mean and standard deviation of a NIST univariate set."""
    folder = shared_data / "nist"
    certified = json.loads((folder / "univariate_certified.json").read_text())
    return lambda name: (_columns(folder / f"univariate_{name}.csv")["y"], certified[name])


def _columns(path: Path) -> dict[str, Any]:
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


@pytest.fixture(params=["baseline", "avx2"])
def core(request: pytest.FixtureRequest) -> Any:
    """Each build of the compiled core that this processor runs."""
    if request.param == "avx2" and not import_module("certifit._core_baseline").cpu_has_avx2():
        pytest.skip("this processor has no AVX2 and FMA")
    return import_module(f"certifit._core_{request.param}")
