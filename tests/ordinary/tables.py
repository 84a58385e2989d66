"""Real tables: the folder shared/data, and random rows of a table in it."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pandas as pd

TABLES = (
    "adult/adult.parquet", "ames_housing/ames_housing.parquet", "bike_sharing/bike_sharing.parquet",
    "california_housing/california_housing.parquet", "classics_small/DoctorVisits.csv", "classics_small/Insurance.csv",
    "classics_small/hbk.csv", "classics_small/medpar.csv", "classics_small/quine.csv", "colon/colon.parquet",
    "fremtpl2/freq.parquet", "german_credit/german_credit.parquet", "higgs_sample/higgs_sample.parquet",
    "kddcup99/train10pct.parquet", "leukemia/leukemia.parquet", "mnist_5k/mnist_5k.parquet",
    "nycflights13/flights.parquet", "nycflights13/weather.parquet", "skin_segmentation/skin_segmentation.parquet",
    "wine_quality/wine_quality.parquet",
)  # fmt: skip
MOST_ROWS = 4000  # of a table that are kept in memory
MOST_LEVELS = 8  # of a column that becomes dummies


def folder() -> Path | None:
    """shared/data beside the project folder or beside one that it lies in; None where it is missing."""
    above = Path(__file__).resolve().parents[3:]
    return next((place / "shared" / "data" for place in above if (place / "shared" / "data").is_dir()), None)


@functools.cache
def table(name: str) -> pd.DataFrame:
    """Some rows of a table, the same every time, in the order of the file."""
    place = folder()
    if place is None:
        raise SystemExit("The folder shared/data with the real tables is not beside the project folder.")
    whole = pd.read_csv(place / name) if name.endswith(".csv") else pd.read_parquet(place / name)
    return whole.sample(min(len(whole), MOST_ROWS), random_state=0).sort_index().reset_index(drop=True)


def numbers(rows: pd.DataFrame) -> list[str]:
    """Columns of numbers without gaps that vary in these rows."""
    kept = rows.select_dtypes("number")
    return [name for name in kept.columns[(kept.nunique() > 1) & ~kept.isna().any()]]


def levels(rows: pd.DataFrame) -> list[str]:
    """Columns of a few levels, text or numbers."""
    return [name for name in rows.columns if 2 <= rows[name].nunique() <= MOST_LEVELS and not rows[name].isna().any()]


def some_rows(rng: np.random.Generator, most: int) -> pd.DataFrame:
    """Random rows of a random table; sometimes a run of neighbours, as in a file that is cut."""
    while True:
        whole = table(str(rng.choice(TABLES)))
        n = min(int(rng.integers(min(40, most // 2), most + 1)), len(whole))
        start = int(rng.integers(len(whole) - n + 1))
        places = np.arange(start, start + n) if rng.random() < 0.2 else np.sort(rng.permutation(len(whole))[:n])
        rows = whole.iloc[places].reset_index(drop=True)
        if len(numbers(rows)) >= 2:
            return rows
