"""Dask workers killed in the middle of a fit change no bit; a scheduler that dies ends the fit with an error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pandas as pd
import pytest

import certifit as cf
from tests.repetitions import some_of

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")]

HANG = 600  # seconds until a process counts as hung; no measure of speed
N_ROWS = 500  # of a partition
MODELS = {
    "lasso": (cf.Lasso(0.01), "number", ("coef_", "intercept_")),
    "logistic": (cf.LogisticRegression(0.01), "label", ("coef_", "intercept_")),
    "naive Bayes": (cf.GaussianNB(), "label", ("theta_", "var_")),
    "PCA": (cf.PCA(2), None, ("components_", "explained_variance_")),
}


def _partition(k: int, order: Path) -> pd.DataFrame:
    """Rows of a partition. `order`: a file with what to kill, and how often the last partition is read before."""
    if k == 3 and order.exists():
        victim, times = order.read_text().split()
        if times == "0":
            order.unlink()
            os.kill(os.getpid() if victim == "me" else int(victim), signal.SIGKILL)
        else:
            order.write_text(f"{victim} {int(times) - 1}")
    rng = np.random.default_rng(k)
    X = rng.normal(size=(N_ROWS, 4))
    number = X @ [1.0, 2.0, 0.0, -1.0] + rng.normal(size=N_ROWS)
    return pd.DataFrame(X, columns=list("abcd")).assign(number=number, label=(number > 0).astype(int))


def _rows(order: Path, target: str | None) -> Any:
    parts = [dask.delayed(partial(_partition, k, order), pure=False)() for k in range(4)]
    frame = dd.from_delayed(parts, meta=_partition(0, order).iloc[:0], verify_meta=False)
    return cf.from_dask(frame, target, columns=list("abcd"))


@pytest.mark.parametrize("name", list(MODELS)[: some_of(4)])
def test_a_worker_killed_in_a_fit_changes_no_bit(cluster, name, tmp_path):
    from sklearn.base import clone

    model, target, states = MODELS[name]
    order = tmp_path / "order"
    rows = _rows(order, target)
    undisturbed = clone(model).fit(rows)
    order.write_text("me 1" if name in ("lasso", "logistic") else "me 0")
    disturbed = clone(model).fit(rows)
    assert not order.exists()  # a worker has been killed
    assert all(np.array_equal(getattr(disturbed, state), getattr(undisturbed, state)) for state in states)
    assert str(disturbed.certificate_) == str(undisturbed.certificate_)


def test_a_scheduler_that_dies_ends_the_fit_with_an_error(tmp_path):
    code = f"""
        import os, subprocess, sys
        from pathlib import Path
        os.environ["PYTHONPATH"] = {str(Path(__file__).parent)!r}
        sys.path.insert(0, os.environ["PYTHONPATH"])
        import dask
        dask.config.set({{"distributed.comm.timeouts.connect": "2s", "distributed.deploy.lost-worker-timeout": "1s"}})
        from distributed import Client
        import certifit as cf
        from test_dask_deaths import _rows

        folder = Path(sys.argv[1])
        address = folder / "scheduler.json"
        options = ["--no-dashboard", "--scheduler-file", address]
        scheduler = subprocess.Popen([sys.executable, "-m", "dask", "scheduler", "--port", "0", *options])
        worker = subprocess.Popen([sys.executable, "-m", "dask", "worker", "--no-nanny", *options])
        try:
            with Client(scheduler_file=str(address), set_as_default=True) as client:
                client.wait_for_workers(1)
                rows = _rows(folder / "order", "number")
                model = cf.HuberRegressor().fit(rows)
                before = model.coef_.tobytes()
                (folder / "order").write_text(f"{{scheduler.pid}} 2")
                try:
                    model.fit(rows)
                    print("no error")
                except Exception as error:
                    print(type(error).__name__, "|", error, "|", model.coef_.tobytes() == before)
        finally:
            worker.kill()
            scheduler.kill()
        """
    command = [sys.executable, "-c", dedent(code), tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG)
    assert done.stdout.endswith("| True\n"), (done.stdout, done.stderr[-2000:])
    assert "scheduler" in done.stdout
