"""The best of 15 strengths of a penalty beside the best of 50, on the same ten folds of real tables.

    python -m benchmarks.strengths [--data ../shared/data]

Ridge regression of classes and counts tries 50 strengths, 15 on tables of 1e7 cells or more. The 15 are every third or
fourth of the 50. Errors of the rows left out: of the best strength of each, their difference and the standard error of
the first.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import certifit as cf

FEWER = 15
N_FOLDS = 10


@dataclass(frozen=True)
class Table:
    """A file of the data and what is asked of it. n_rows: of a sample, None for all rows."""

    file: str
    target: str
    drop: tuple[str, ...] = ()
    n_rows: int | None = None
    is_counts: bool = False


TABLES = {
    "german_credit": Table("german_credit/german_credit.parquet", "class"),
    "adult": Table("adult/adult.parquet", "income", ("split",), 5000),
    "higgs_sample": Table("higgs_sample/higgs_sample.parquet", "y", ("split",), 5000),
    "bike_sharing": Table(
        "bike_sharing/bike_sharing.parquet", "cnt", ("instant", "dteday", "casual", "registered"), 3000, is_counts=True
    ),
}


def compared(name: str, data: Path) -> str:
    """A line of the table."""
    table = TABLES[name]
    frame = pd.read_parquet(data / table.file).drop(columns=list(table.drop))
    frame = frame if table.n_rows is None else frame.sample(table.n_rows, random_state=0)
    X, y = frame.drop(columns=table.target), frame[table.target].to_numpy()
    model = cf.PoissonRegressor(encoder="auto") if table.is_counts else cf.LogisticRegression(encoder="auto")
    scoring = "neg_mean_poisson_deviance" if table.is_counts else "neg_log_loss"
    search = cf.CrossValidated(model, cv=N_FOLDS, scoring=scoring).fit(X, y if table.is_counts else y.astype(str))
    folds = -np.array([search.cv_results_[f"split{split}_test_score"] for split in range(N_FOLDS)])
    errors = folds.mean(axis=0)
    some = np.rint(np.linspace(0, len(errors) - 1, FEWER)).astype(int)
    of_all, of_some = int(errors.argmin()), int(some[errors[some].argmin()])
    standard_error = folds[:, of_all].std(ddof=1) / np.sqrt(N_FOLDS)
    difference = errors[of_some] - errors[of_all]
    return f"| {name} | {errors[of_all]:.4g} ± {standard_error:.2g} | {errors[of_some]:.4g} | {difference:.2g} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    options = parser.parse_args()
    for name in TABLES:
        print(compared(name, options.data), flush=True)


if __name__ == "__main__":
    main()
