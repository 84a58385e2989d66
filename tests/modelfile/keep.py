"""Keeps a model file of a newcomer, with its rows and what it answers to them, for every later version to read.

    PYTHONPATH=tests python tests/modelfile/keep.py ridge

The name is a key of tests/learners.py. A file that is there is never written again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from learners import ROWS, Row
from sklearn.base import clone

import certifit as cf

FILES = Path(__file__).parent / "files"


def kept() -> list[str]:
    """Names of the files that have their rows and answers beside them."""
    return sorted(path.stem for path in FILES.glob("*_[0-9].*.json"))


def keep(key: str) -> None:
    """Fit the model of a row of the tests, and write its file and its answers."""
    path = FILES / f"{key.replace(' ', '_')}_{cf.__version__.rpartition('.')[0]}.certifit"
    if path.exists():
        raise FileExistsError(f"{path.name} is kept, and never written again.")
    X, y = ROWS[key].rows(24, 3)
    X = X.round(3)
    model = clone(ROWS[key].model).fit(X) if y is None else clone(ROWS[key].model).fit(X, y)
    cf.save(model, path)
    said = {"X": X.tolist(), "y": None if y is None else y.tolist(), "answers": Row.answers(model, X).tolist()}
    path.with_suffix(".json").write_text(json.dumps(said, indent=1) + "\n")


def read(name: str) -> tuple[Any, Any, Any]:
    """Rows, targets and answers of a kept file."""
    said = json.loads((FILES / f"{name}.json").read_text())
    X = pd.DataFrame(said["X"]) if isinstance(said["X"], dict) else np.array(said["X"])
    return X, None if said["y"] is None else np.array(said["y"]), np.array(said["answers"])


if __name__ == "__main__":
    for name in sys.argv[1:]:
        keep(name)
