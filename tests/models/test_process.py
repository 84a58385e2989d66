"""A fit among other things that happen to a process: Ctrl-C, little memory, threads, fork."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import Any

import numpy as np
import pytest

import certifit as cf
from certifit import runtime

HANG = 600  # seconds until a process counts as hung; no measure of speed


def run(code: str, *args: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG, **options)


# Work of many minutes on rows that are one row in memory -> the function that waits for the core.
LONG_CALLS = {
    "a fit": ("cf.LinearRegression().fit(X, y)", "_of_stretch"),
    "twofold sums": ("gram(Memory(X, y), centred=True, twofold=True)", "_of_stretch"),
    "a residual pass": ("residual(Memory(X, y), scaling, X[0], 0.0, X[0], X[0])", "_of_stretch"),
    "a twofold factor": ("twofold_factor(System.of(large, large * 0, large[0], large[0]))", "twofold_factor"),
}


@pytest.mark.slow
def test_control_c_ends_long_work_and_the_next_fit_works():
    """All in one process: each piece of work also follows one that was interrupted."""
    code = f"""
        import os, signal, sys, threading
        import numpy as np, certifit as cf
        from certifit.data.source import Memory
        from certifit.statistics.factor import System, twofold_factor
        from certifit.statistics.gram import Scaling, gram
        from certifit.statistics.residual import residual

        X = np.broadcast_to(np.random.default_rng(0).random(1000), (4_000_000, 1000))
        y = np.ones(4_000_000)
        large = np.eye(4000) + 1e-9
        scaling = Scaling(np.ones(1000), np.zeros(1000), 1.0, 0.0, 1.0)
        small = np.arange(30.0).reshape(10, 3) ** 2, np.arange(10.0)
        before = cf.LinearRegression().fit(*small).coef_
        main = threading.get_ident()

        def interrupt_inside_the_core(waits_in):
            looks = 0
            while looks < 20_000:
                looks = looks + 1 if sys._current_frames()[main].f_code.co_name == waits_in else 0
            os.kill(os.getpid(), signal.SIGINT)

        for name, (call, waits_in) in {LONG_CALLS!r}.items():
            try:
                threading.Thread(target=interrupt_inside_the_core, args=[waits_in], daemon=True).start()
                eval(call)
                print(name, "was not interrupted")
            except KeyboardInterrupt:
                print(name, np.array_equal(cf.LinearRegression().fit(*small).coef_, before))
        """
    done = run(code)
    assert done.stdout.splitlines() == [f"{name} True" for name in LONG_CALLS], done.stderr


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the peak of memory is read from /proc")
@pytest.mark.skipif("CERTIFIT_SANITIZED" in os.environ, reason="a sanitizer keeps memory that was given back")
@pytest.mark.slow
def test_a_fit_needs_little_memory_beside_its_rows():
    code = """
        import os, sys, numpy as np, certifit as cf
        from sklearn.base import clone
        def peak():
            return int(next(l for l in open("/proc/self/status") if l.startswith("VmHWM")).split()[1]) * 1024
        def measure(order, dtype, model):
            X = np.random.default_rng(0).random((200_000, 50), dtype=np.float32).astype(dtype, order=order)
            y = X[:, 0] + 1.0
            clone(model).fit(X[:100], y[:100])                         # a fork maps the pages of libraries anew
            open("/proc/self/clear_refs", "w").write("5")              # the peak starts anew
            before = peak()
            model.fit(X, y)
            print(order, dtype, model, (peak() - before) / X.nbytes, 8 * 2**20 / X.nbytes, sep=";", flush=True)
        small = np.random.default_rng(0).random((100, 50))
        cf.LinearRegression().fit(small, small[:, 0])                  # libraries are loaded
        for order, dtype in [("C", "float64"), ("F", "float64"), ("C", "float32")]:
            for model in (cf.LinearRegression(), cf.Ridge()):
                child = os.fork()                                      # no memory of an earlier fit is used again
                if child == 0:
                    measure(order, dtype, model)
                    os._exit(0)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        """
    done = run(code, env=os.environ | {"OMP_NUM_THREADS": "2"})
    assert done.returncode == 0, done.stderr
    fits = [line.split(";") for line in done.stdout.splitlines()]
    assert len(fits) == 6
    assert [fit for fit in fits if float(fit[3]) > 0.1 + float(fit[4])] == []


@pytest.mark.slow
def test_a_file_is_fitted_in_constant_memory(tmp_path):
    lines = [f"{i % 7}.5,{i % 11},{i % 13},1.25,{i % 3},0,{i % 5}.5,{i % 17},{i % 19}\n" for i in range(300_000)]
    for name, times in (("short", 2), ("long", 16)):
        (tmp_path / name).write_text("a,b,c,d,e,f,g,h,y\n" + "".join(lines) * times)
    code = """
        import resource, sys, certifit as cf
        peaks = []
        for path in sys.argv[1:]:
            cf.LinearRegression().fit(cf.scan_csv(path, target="y"))
            peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
        print(peaks[2] - peaks[1])
        """
    short = tmp_path / "short"
    done = run(code, short, short, tmp_path / "long")  # the allocator keeps some memory of a first fit
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 140 << 20  # the rows more are 302 MB; what is read ahead is bounded


@pytest.mark.parametrize("n", [0, -1, 1.5, "2", True, None])
def test_threads_takes_a_whole_number_from_one(n):
    with pytest.raises(ValueError, match="threads must be an integer >= 1"), cf.threads(n):
        pass


def test_threads_holds_inside_its_block_and_in_its_thread_only():
    from threading import Thread

    before = runtime.n_threads()
    seen = []
    with cf.threads(3):
        assert runtime.n_threads() == 3
        with cf.threads(1):
            assert runtime.n_threads() == 1
        assert runtime.n_threads() == 3
        other = Thread(target=lambda: seen.append(runtime.n_threads()))
        other.start()
        other.join()
    assert runtime.n_threads() == before
    assert seen == [before]


@pytest.mark.parametrize("value, expected", [("1", 1), ("1,4", 1), ("0", None), ("many", None), ("", None)])
def test_omp_num_threads_limits_the_threads(monkeypatch, value, expected):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    free = runtime.n_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert runtime.n_threads() == (free if expected is None else expected)


def test_the_setting_of_blas_is_given_back():
    from threadpoolctl import threadpool_info, threadpool_limits

    def settings() -> list[int]:
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    cf.LinearRegression().fit([[1.0], [2.0], [4.0]], [1.0, 2.0, 3.0])  # every library is loaded
    with threadpool_limits(2, user_api="blas"):  # another number than the one that a fit sets
        before = settings()
        cf.LinearRegression().fit(np.random.default_rng(0).normal(size=(30, 3)), np.arange(30.0))
        with pytest.raises(ValueError):
            cf.LinearRegression().fit(np.full((30, 3), np.nan), np.arange(30.0))
        assert settings() == before
        assert set(before) == {2}


def test_fits_in_many_threads_at_once_are_those_of_one(rng):
    from concurrent.futures import ThreadPoolExecutor

    X, y = rng.normal(size=(2000, 5)), rng.normal(size=2000)
    alone = cf.LinearRegression().fit(X, y).coef_
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: cf.LinearRegression().fit(X, y).coef_, range(20)))
    assert all(np.array_equal(alone, coef) for coef in found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.slow
def test_a_fork_after_a_fit_can_fit():
    code = """
        import os, numpy as np, certifit as cf
        X, y = np.random.default_rng(0).normal(size=(20_000, 5)), np.arange(20_000.0)
        model = cf.LinearRegression().fit(X, y)
        child = os.fork()
        if child == 0:
            os._exit(0 if np.array_equal(cf.LinearRegression().fit(X, y).coef_, model.coef_) else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    assert run(code).stdout == "0\n"
