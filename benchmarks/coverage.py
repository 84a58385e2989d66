"""How often the intervals that certifit prints hold the truth, by simulation, with the standard error of each figure.

    python -m benchmarks.coverage                              # everything, 2,000 simulations for each figure
    python -m benchmarks.coverage auc hc --runs 200            # some, and fewer
    python -m benchmarks.coverage --out benchmarks/results/coverage.jsonl
    python -m benchmarks.coverage --table benchmarks/results/coverage.jsonl     # result lines as a table

Every level is 0.95. Simulation number i of a figure draws from default_rng([seed of the figure, i]), so figures are the
same on every run. "none" is the share of simulations in which the output says that rows are too few, and gives no
interval: those do not count as covered or missed. Set OMP_NUM_THREADS=1: the fits are small.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

import certifit as cf
from certifit.evaluation.metrics.auc_intervals import PlacementSums
from certifit.evaluation.metrics.rows import scored_rows

RUNS = 2000
RESAMPLES = 199
Rng = np.random.Generator
Hits = dict[str, float]  # what: 1 covered, 0 missed, nan no interval


@dataclass(frozen=True)
class Figure:
    """One line of the table."""

    section: str
    interval: str
    rows: str
    coverage: float
    standard_error: float
    none: float
    runs: int


def held(truth: float, low: float | None, high: float | None) -> float:
    """1 where the interval holds the truth, 0 where not, nan where there is none."""
    if low is None or high is None or math.isnan(low):
        return math.nan
    return float(low <= truth <= high)


def of(estimate: Any, truth: float) -> float:
    return held(truth, estimate.low, estimate.high)


# ---- areas ----------------------------------------------------------------------------------------------------------


def scores(rng: Rng, m: int, k: int, auc: float, law: str) -> tuple[Any, Any]:
    """m positives and k negatives with P(positive > negative) = auc."""
    y = np.repeat([1, 0], [m, k])
    if law == "normal":
        return y, rng.normal(size=m + k) + math.sqrt(2) * special.ndtri(auc) * y
    if law == "unequal":  # the positives spread twice as much
        return y, rng.normal(size=m + k) * (1 + y) + math.sqrt(5) * special.ndtri(auc) * y
    return y, rng.exponential(size=m + k) * np.where(y == 1, auc / (1 - auc), 1.0)


def logit_normal(y: Any, score: Any) -> tuple[float, float]:
    """DeLong's variance on the logit scale with the normal law, for comparison."""
    sums = PlacementSums.of(scored_rows(y, score))
    if sums.is_separated:
        return math.nan, math.nan
    half = 1.959964 * math.sqrt(sums.variance) / (sums.auc * (1 - sums.auc))
    centre = special.logit(sums.auc)
    return float(special.expit(centre - half)), float(special.expit(centre + half))


def delong(m: int, k: int, auc: float, law: str) -> Callable[[Rng], Hits]:
    def hits(rng: Rng) -> Hits:
        y, score = scores(rng, m, k, auc, law)
        return {
            "DeLong": of(cf.roc_auc_score(y, score), auc),
            "(DeLong, logit and normal law)": held(auc, *logit_normal(y, score)),
        }

    return hits


def resampled_area(m: int, k: int, auc: float) -> Callable[[Rng], Hits]:
    def hits(rng: Rng) -> Hits:
        y, score = scores(rng, m, k, auc, "normal")
        found = cf.roc_auc_score(y, score, interval="bootstrap", n_resamples=RESAMPLES)
        return {"bootstrap AUC": of(found, auc)}

    return hits


def compared(m: int, k: int) -> Callable[[Rng], Hits]:
    def hits(rng: Rng) -> Hits:
        y, score = scores(rng, m, k, 0.8, "normal")
        other = scores(rng, m, k, 0.7, "normal")[1]
        return {"DeLong, difference of two": of(cf.compare_auc(y, score, other).difference, 0.1)}

    return hits


# ---- areas over folds -----------------------------------------------------------------------------------------------


def learner(name: str) -> Any:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.tree import DecisionTreeClassifier

    return {
        "discriminant": LinearDiscriminantAnalysis(),
        "naive Bayes": GaussianNB(),
        "logistic": LogisticRegression(),
        "tree": DecisionTreeClassifier(max_depth=3, min_samples_leaf=3, random_state=0),
    }[name]


def over_folds(name: str, n: int, share: float, apart: float, folds: int) -> Callable[[Rng], Hits]:
    """8 columns; apart: how far the classes are apart in three of them. Truth: the mean AUC of the fold models."""
    centre = apart * np.array([1.0, -0.7, 0.5, 0, 0, 0, 0, 0])

    def hits(rng: Rng) -> Hits:
        y = rng.permutation(np.arange(n) < round(share * n)).astype(int)
        X = rng.normal(size=(n, 8)) + y[:, None] * centre
        y_new = np.repeat([1, 0], 1500)
        new = rng.normal(size=(3000, 8)) + y_new[:, None] * centre
        score, fold = np.empty(n), np.empty(n, dtype=int)
        pairs, areas = [], []
        for f, (train, validation) in enumerate(cf.Folds(folds, stratify=True).split(X, y)):
            model = learner(name).fit(X[train], y[train])
            score[validation], fold[validation] = model.predict_proba(X[validation])[:, 1], f
            positives = int(y[validation].sum())
            pairs.append(positives * (len(validation) - positives))
            is_noise = apart == 0
            areas.append(0.5 if is_noise else cf.roc_auc_score(y_new, model.predict_proba(new)[:, 1], interval=None))
        truth = float(np.average(areas, weights=pairs))
        return {
            f"AUC over folds, {name}": of(cf.roc_auc_score(y, score, folds=fold), truth),
            f"(all scores together, DeLong, {name})": of(cf.roc_auc_score(y, score), truth),
        }

    return hits


# ---- errors ---------------------------------------------------------------------------------------------------------


def errors(n: int, law: str) -> Callable[[Rng], Hits]:
    """Errors of a law with variance 1 of predictions that explain half of y."""
    t5 = math.sqrt(3 / 5) * 2 * math.sqrt(5) * math.gamma(3) / (4 * math.gamma(2.5) * math.sqrt(math.pi))
    size = {"normal": math.sqrt(2 / math.pi), "t5": t5}[law]  # E|e|

    def hits(rng: Rng) -> Hits:
        p = rng.normal(size=n)
        e = rng.normal(size=n) if law == "normal" else rng.standard_t(5, n) * math.sqrt(3 / 5)
        options: Any = {"n_resamples": RESAMPLES}
        drawn = np.mean(e[rng.integers(0, n, (RESAMPLES, n))] ** 2, axis=1)
        return {
            "mean squared error": of(cf.mean_squared_error(p + e, p, **options), 1.0),
            "mean absolute error": of(cf.mean_absolute_error(p + e, p, **options), size),
            "R squared": of(cf.r2_score(p + e, p, **options), 0.5),
            "(mean squared error, percentiles)": held(1.0, *np.quantile(drawn, [0.025, 0.975])),
        }

    return hits


def log_losses(n: int) -> Callable[[Rng], Hits]:
    grid = np.linspace(-12, 12, 20_001)
    density = np.exp(-(grid**2) / (2 * 1.5**2))
    truth = float(np.average(special.entr(special.expit(grid)) + special.entr(special.expit(-grid)), weights=density))

    def hits(rng: Rng) -> Hits:
        p = special.expit(1.5 * rng.normal(size=n))
        y = (rng.random(n) < p).astype(int)
        y[:2] = 0, 1
        return {"log loss": of(cf.log_loss(y, p, n_resamples=RESAMPLES), truth)}

    return hits


def accuracy(n: int, share: float) -> Callable[[Rng], Hits]:
    def hits(rng: Rng) -> Hits:
        right = rng.random(n) < share
        return {"accuracy, Clopper-Pearson": of(cf.accuracy_score(np.ones(n), right.astype(float)), share)}

    return hits


# ---- coefficients and predictions -----------------------------------------------------------------------------------

COLUMNS: dict[str, Callable[[Rng, int], Any]] = {
    "normal column": lambda rng, n: rng.normal(size=n),
    "log-normal column": lambda rng, n: np.exp(rng.normal(size=n)),
}
NOISE: dict[str, Callable[[Any], Any]] = {
    "equal noise": np.ones_like,
    "noise like x": np.abs,
    "noise like x^2": np.square,
}


def robust(n: int, column: str, noise: str) -> Callable[[Rng], Hits]:
    def hits(rng: Rng) -> Hits:
        x = COLUMNS[column](rng, n)
        X, y = x[:, None], x + NOISE[noise](x) * rng.normal(size=n)
        model = cf.LinearRegression().fit(X, y)
        found = {"plain": held(1.0, *model.summary().inference.confidence_interval()[1])}
        for kind in ("HC0", "HC1", "HC2", "HC3"):
            fit = model.summary(X, y, covariance=kind).inference
            found[kind] = held(1.0, *fit.confidence_interval()[1])
            if kind in ("HC1", "HC3"):
                half = 1.959964 * fit.standard_errors[1]
                found[f"({kind}, normal law)"] = held(1.0, fit.estimate[1] - half, fit.estimate[1] + half)
        return found

    return hits


def wald(name: str, n: int) -> Callable[[Rng], Hits]:
    def hits(rng: Rng) -> Hits:
        X = rng.normal(size=(n, 2))
        score = 0.5 + X @ [0.6, -0.3]
        if name == "Poisson":
            model, y = cf.PoissonRegressor(alpha=0), rng.poisson(np.exp(score)).astype(float)
        elif name == "Gamma":
            model, y = cf.GammaRegressor(alpha=0), rng.gamma(2.0, np.exp(score) / 2)
        else:
            model, y = cf.LogisticRegression(alpha=0), (rng.random(n) < special.expit(score)).astype(int)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = model.fit(X, y).inference_
        ends = (None, None) if fit is None else fit.confidence_interval()[1]
        return {f"{name}, Wald": held(0.6, *ends)}

    return hits


def predicted(n: int) -> Callable[[Rng], Hits]:
    def hits(rng: Rng) -> Hits:
        X = rng.normal(size=(n + 1, 3))
        mean = X @ [1.0, -0.5, 0.0]
        y = mean + rng.normal(size=n + 1)
        model = cf.LinearRegression().fit(X[:n], y[:n])
        plus = cf.jackknife_plus(cf.LinearRegression(), X[:n], y[:n], X[n:], 0.95)[0]
        return {
            "new row": held(y[n], *model.predict_interval(X[n:])[0]),
            "mean of a new row": held(mean[n], *model.predict_interval(X[n:], kind="confidence")[0]),
            "new row, jackknife+": held(y[n], *plus),
        }

    return hits


# ---- the table ------------------------------------------------------------------------------------------------------

CASES: dict[str, list[tuple[str, Callable[[Rng], Hits]]]] = {
    "auc": [
        *(
            (f"{m} + {k}, AUC {auc}, {law} scores", delong(m, k, auc, law))
            for m, k, auc, law in [
                (5, 500, 0.7, "normal"), (5, 500, 0.95, "normal"), (5, 500, 0.95, "unequal"), (10, 10, 0.8, "normal"),
                (20, 200, 0.95, "exponential"), (50, 50, 0.9, "normal"), (100, 1000, 0.98, "unequal"),
                (500, 500, 0.8, "normal"),
            ]
        ),
        ("20 + 200, AUC 0.9", resampled_area(20, 200, 0.9)),
        ("10 + 200, AUC 0.8 and 0.7", compared(10, 200)),
    ],
    "folds": [
        (f"{n} rows, {100 * share:g} % positive, {folds} folds, {'noise' if apart == 0 else f'signal {apart}'}",
         over_folds(name, n, share, apart, folds))
        for name, n, share, apart, folds in [
            ("discriminant", 60, 0.5, 0.0, 10),
            ("logistic", 200, 0.1, 0.0, 5),
            ("naive Bayes", 200, 0.05, 0.6, 5),
            ("tree", 60, 0.5, 0.0, 10),
            ("logistic", 100, 0.5, 1.5, 3),
            ("discriminant", 100, 0.1, 0.6, 10),
        ]
    ],
    "errors": [
        *((f"{n} rows, {law} errors", errors(n, law)) for n, law in
          [(10, "normal"), (15, "normal"), (30, "normal"), (100, "normal"), (30, "t5"), (300, "t5")]),
        ("30 rows", log_losses(30)), ("200 rows", log_losses(200)),
        ("30 rows, 0.8 right", accuracy(30, 0.8)), ("200 rows, 0.95 right", accuracy(200, 0.95)),
    ],
    "hc": [
        (f"{n} rows, {column}, {noise}", robust(n, column, noise))
        for n, column, noise in [
            (100, "log-normal column", "noise like x"), (20, "normal column", "noise like x^2"),
            (20, "normal column", "equal noise"), (100, "log-normal column", "equal noise"),
        ]
    ],
    "glm": [
        ("20 rows, 3 columns", predicted(20)),
        *((f"{n} rows", wald(name, n)) for name, n in
          [("logistic", 50), ("logistic", 200), ("Poisson", 50), ("Gamma", 50)]),
    ],
}  # fmt: skip


def figures(section: str, rows: str, hits: Callable[[Rng], Hits], runs: int) -> Iterator[Figure]:
    """The figures of one case."""
    seed = zlib.crc32(f"{section} {rows}".encode())
    found = [hits(np.random.default_rng([seed, i])) for i in range(runs)]
    for name in found[0]:
        values = np.array([each[name] for each in found])
        shown = values[~np.isnan(values)]
        coverage = float(shown.mean()) if len(shown) else math.nan
        error = math.sqrt(coverage * (1 - coverage) / len(shown)) if len(shown) else math.nan
        yield Figure(section, name, rows, coverage, error, 1 - len(shown) / runs, runs)


def line(figure: Figure) -> str:
    """A row of a Markdown table."""
    none = f"{100 * figure.none:.0f} %" if figure.none else ""
    if math.isnan(figure.coverage):
        return f"| {figure.interval} | {figure.rows} | too few rows | | {none} |"
    return f"| {figure.interval} | {figure.rows} | {figure.coverage:.3f} | {figure.standard_error:.3f} | {none} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"some of {', '.join(CASES)}")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--out")
    parser.add_argument("--table", help="result lines to print as a table; nothing is run")
    given = parser.parse_args()
    if unknown := set(given.sections) - set(CASES):
        parser.error(f"unknown {sorted(unknown)}. Sections are {', '.join(CASES)}.")
    print("| interval | rows | covers | standard error | none |\n|---|---|---|---|---|")
    if given.table:
        lines = [json.loads(text) for text in Path(given.table).read_text().splitlines()]
        wanted = [Figure(**{k: math.nan if v is None else v for k, v in each.items()}) for each in lines]
        print("\n".join(line(each) for each in wanted if each.section in (given.sections or CASES)))
        return
    for section in given.sections or CASES:
        for rows, hits in CASES[section]:
            for figure in figures(section, rows, hits, given.runs):
                print(line(figure), flush=True)
                if given.out:
                    record = {
                        k: None if isinstance(v, float) and math.isnan(v) else v for k, v in asdict(figure).items()
                    }
                    with open(given.out, "a") as file:
                        file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
