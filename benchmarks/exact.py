"""Exact proofs of fits to real tables: how long they take, and the exact value beside the one in float64.

    python -m benchmarks.exact                  # five tables, some minutes
    python -m benchmarks.exact wine             # some

The tables are looked for in shared/data beside the project folder. Seconds are those of one run of `cf.verify(...,
exact=True)` less those of `cf.verify(...)`; "expected" is what the command line prints first.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import certifit as cf
from certifit.exact.proof import expected_seconds

DATA = Path(os.environ.get("CERTIFIT_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))

BIKE = ["season", "yr", "mnth", "hr", "holiday", "weekday", "workingday", "weathersit", "temp", "hum", "windspeed"]

WORDS = cf.TableEncoder(texts=cf.TextBinarizer(binary=False))

Case = Callable[[], tuple[Any, Any]]


def _scan(name: str, target: str | None, **options: Any) -> Any:
    path = DATA / name / f"{name}.parquet"
    if not path.exists():
        raise SystemExit(f"{path.name} is not there: the folder shared/data belongs beside the project folder.")
    return cf.scan_parquet(str(path), target=target, **options)


def _fit(model: Any, source: Any) -> tuple[Any, Any]:
    return model.fit(source), source


CASES: dict[str, Case] = {
    "german_credit: LogisticRegression": lambda: _fit(cf.LogisticRegression(), _scan("german_credit", "class")),
    "wine_quality: LinearRegression": lambda: _fit(cf.LinearRegression(), _scan("wine_quality", "quality")),
    "wine_quality: HuberRegressor": lambda: _fit(cf.HuberRegressor(), _scan("wine_quality", "quality")),
    "wine_quality: GaussianDiscriminant": lambda: _fit(cf.GaussianDiscriminant(), _scan("wine_quality", "quality")),
    "wine_quality: PCA": lambda: _fit(cf.PCA(3, standardize=True), _scan("wine_quality", None)),
    "bike_sharing: GLM poisson": lambda: _fit(cf.GLM("poisson"), _scan("bike_sharing", "cnt", columns=BIKE)),
    "ames_housing: Lasso": lambda: _fit(cf.Lasso(1000.0, standardize=True), _scan("ames_housing", "Sale_Price")),
    "ames_housing: Ridge": lambda: _fit(cf.Ridge(), _scan("ames_housing", "Sale_Price")),
    "sms_spam: MultinomialNB of words": lambda: _fit(cf.MultinomialNB(encoder=WORDS), _scan("sms_spam", "label")),
}


def main() -> None:
    """Fit, verify, verify exactly, and print a row per case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of the names of cases")
    names = parser.parse_args().names
    warnings.simplefilter("ignore")
    print("| fit | rows x columns | float64 | exact | bits | seconds | expected |", flush=True)
    print("|---|---|---|---|---|---|---|", flush=True)
    for name, make in CASES.items():
        if names and not any(part in name for part in names):
            continue
        model, source = make()
        begin = time.perf_counter()
        cf.verify(model, source)
        plain = time.perf_counter() - begin
        result = cf.verify(model, source, exact=True, most_minutes=60)
        seconds = time.perf_counter() - begin - 2 * plain
        size = f"{model.data_['n_rows']:,} x {len(model.column_names_):,}"
        proof = result.exact
        assert proof is not None
        value = f"{proof.upper:.1e}" if proof.is_sharp else f"{proof.lower:.1e} to {proof.upper:.1e}"
        end = "" if result.holds else " NOT verified"
        row = (name, size, f"{result.certificate.value:.1e}", value + end, proof.bits, f"{seconds:.1f}")
        print("| " + " | ".join(map(str, (*row, f"{expected_seconds(model):.0f}"))) + " |", flush=True)
        for reason in result.reasons:
            print(f"  {reason}", flush=True)


if __name__ == "__main__":
    main()
