"""AUC of many scores, and bootstrap AUCs, against scikit-learn and scikit-learn-intelex.

    python -m benchmarks.ranking [--rows 10000000] [--repeats 5] [--bootstrap-rows 100000] [--resamples 1000]

The runs of all are interleaved and the minimum counts, except that scikit-learn's loop over the resamples runs once.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score as scikit_learn_auc
from sklearn.utils import resample

from certifit.evaluation.metrics.auc_intervals import replicates
from certifit.evaluation.metrics.ranking import roc_auc_score
from certifit.evaluation.metrics.rows import scored_rows


def rows(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    return y, rng.normal(size=n) + y


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


def interleaved(rivals: dict[str, Callable[[], Any]], repeats: int) -> tuple[dict[str, float], dict[str, Any]]:
    seconds, results = dict.fromkeys(rivals, np.inf), {}
    for _ in range(repeats):
        for name, work in rivals.items():
            took, results[name] = timed(work)
            seconds[name] = min(seconds[name], took)
    return seconds, results


def areas(n: int, repeats: int) -> None:
    y, scores = rows(n)
    rivals: dict[str, Callable[[], Any]] = {
        "certifit": lambda: roc_auc_score(y, scores, interval=None),
        "certifit with DeLong interval": lambda: roc_auc_score(y, scores),
    }
    try:
        from sklearnex.metrics import roc_auc_score as intelex_auc

        rivals["scikit-learn-intelex"] = lambda: intelex_auc(y, scores)
    except ImportError:
        print("scikit-learn-intelex is not installed.")
    rivals["scikit-learn"] = lambda: scikit_learn_auc(y, scores)
    seconds, results = interleaved(rivals, repeats)
    print(f"AUC of {n:,} scores, minimum of {repeats}")
    for name, took in seconds.items():
        value = float(results[name])
        difference = abs(value - float(results["certifit"]))
        ratio = took / seconds["certifit"]
        print(f"  {name:30} {took:7.3f} s  {ratio:6.1f}x  AUC {value:.16f}  difference {difference:.1e}")


def bootstrap(n: int, n_resamples: int, repeats: int) -> None:
    y, scores = rows(n)
    ours, (values, _) = min(
        (timed(lambda: replicates(scored_rows(y, scores), "auc", n_resamples, 0)) for _ in range(repeats)),
        key=lambda run: run[0],
    )
    loop, theirs = timed(lambda: [scikit_learn_auc(*resample(y, scores, random_state=b)) for b in range(n_resamples)])
    print(f"{n_resamples:,} bootstrap AUCs of {n:,} rows")
    for name, took, found in (("certifit", ours, values), ("scikit-learn", loop, theirs)):
        summary = f"mean {np.mean(found):.6f}  spread {np.std(found):.6f}"
        print(f"  {name:30} {took:7.3f} s  {took / ours:6.1f}x  {summary}")
    chance = np.std(theirs) * np.sqrt(2 / n_resamples)
    print(f"  the means differ by {abs(np.mean(values) - np.mean(theirs)) / chance:.1f} standard errors")


def main() -> None:
    parser = argparse.ArgumentParser(description="Ranking metrics against scikit-learn and scikit-learn-intelex.")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--bootstrap-rows", type=int, default=100_000)
    parser.add_argument("--resamples", type=int, default=1000)
    given = parser.parse_args()
    areas(given.rows, given.repeats)
    bootstrap(given.bootstrap_rows, given.resamples, given.repeats)


if __name__ == "__main__":
    main()
