"""Correct digits on NIST's eleven linear sets, for certifit and each peer.

    python -m benchmarks.accuracy [--data FOLDER]

A cell is the minimum over the coefficients of  -log10(|estimate - exact| / |exact|), at most 15, at least 0;
exact is the rational solution of the decimal data. Polynomial sets are given as raw powers of x in float64,
which alone limits Filip to 7.6 digits; only a basis that knows x, as in certifit's second row, does better.
"""

import argparse
import csv
import json
import sys
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import rivals
from .problems import Data
from .table import grid

FOLDER = Path(__file__).parents[2] / "shared" / "data" / "nist"
CAP = 15.0

Estimate = Callable[["Certified"], list[float]]


class Certified(NamedTuple):
    """One NIST set: the raw columns, the design with its powers, the exact coefficients (intercept first)."""

    name: str
    inputs: NDArray[np.float64]
    data: Data
    degree: int  # 1 also for sets that are not polynomials
    exact: list[Decimal]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description="Digits on NIST's sets.")
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder with certified.json and the CSV files")
    folder = parser.parse_args().data
    if not (folder / "certified.json").exists():
        print("Skipped: the folder of NIST's sets is missing. Name it with --data.")
        return
    print(markdown(read(folder)))


def markdown(sets: list[Certified]) -> str:
    rows = []
    ways = estimates()
    warnings.simplefilter("ignore")  # after the imports: statsmodels sets filters of its own
    for name, estimate in ways.items():
        found = [digits(name, estimate, certified) for certified in sets]
        mean = f"{sum(value or 0.0 for value in found) / len(found):.1f}"
        rows.append([name, *("failed" if value is None else f"{value:.1f}" for value in found), mean])
    return grid(["digits", *(certified.name for certified in sets), "mean"], rows)


def read(folder: Path) -> list[Certified]:
    table = json.loads((folder / "certified.json").read_text())
    sets = []
    for name, facts in table.items():
        with (folder / f"{name}.csv").open() as file:
            rows = np.array(list(csv.reader(file))[1:], dtype=np.float64)
        y, inputs = rows[:, 0], rows[:, 1:]
        degree = facts["degree_or_p"] if facts["kind"] == "poly" else 1
        X = np.hstack([inputs**k for k in range(1, degree + 1)])
        exact = [Decimal(text) for text in facts["exact_estimate"]]
        sets.append(Certified(name, inputs, Data(X, y, fit_intercept=facts["intercept"]), degree, exact))
    return sets


def digits(name: str, estimate: Estimate, certified: Certified) -> float | None:
    """None when the solver refuses or fails, with its reason on stderr."""
    try:
        found = estimate(certified)
    except Exception as error:  # a rival may raise anything
        print(f"{name} failed on {certified.name}: {type(error).__name__}: {error}", file=sys.stderr)
        return None
    return min(correct_digits(value, exact) for value, exact in zip(found, certified.exact, strict=True))


def correct_digits(value: float, exact: Decimal) -> float:
    if not np.isfinite(value):
        return 0.0
    error = abs(Decimal(float(value)) - exact) / abs(exact)
    return CAP if error == 0 else min(CAP, max(0.0, -float(error.log10())))


def estimates() -> dict[str, Estimate]:
    """Every way to fit ordinary least squares that the installed rivals offer."""
    found: dict[str, Estimate] = {}
    for name in rivals.MODULES:
        try:
            rival = rivals.load(name)
            rival.version()
            variants = rival.solvers()["ols"]
        except ImportError as error:
            print(f"skipped {name}: {error}", file=sys.stderr)
            continue
        found |= {f"{name} {variant}": from_solver(solver) for variant, solver in variants.items()}
        if name == "certifit":
            found["certifit LinearRegression(basis=Polynomial)"] = with_basis
    return found


def from_solver(solver: rivals.Solver) -> Estimate:
    def estimate(certified: Certified) -> list[float]:
        solution = solver(certified.data)
        coef = np.asarray(solution.coef).ravel().tolist()
        return [solution.intercept, *coef] if certified.data.fit_intercept else coef

    return estimate


def with_basis(certified: Certified) -> list[float]:
    """certifit's own polynomial columns, told in powers of x; a plain fit where the set is no polynomial."""
    import certifit as cf

    basis: Any = cf.Polynomial(certified.degree) if certified.degree > 1 else None
    model = cf.LinearRegression(fit_intercept=certified.data.fit_intercept, basis=basis)
    model.fit(certified.inputs, certified.data.y)
    if basis is not None:
        return list(model.monomials().values())
    return [model.intercept_, *model.coef_] if certified.data.fit_intercept else list(model.coef_)


if __name__ == "__main__":
    main()
