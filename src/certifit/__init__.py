"""certifit: classical machine learning that proves its answers.

Names are loaded on first use, so `import certifit` and `certifit --help` cost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# public name -> the module that holds it
_PUBLIC = {
    "LinearRegression": "models.linear",
    "Ridge": "models.linear",
    "Polynomial": "maps",
    "Functions": "maps",
    "TableEncoder": "maps",
    "Folds": "selection.splits",
    "Bootstrap": "selection.splits",
    "CrossValidated": "selection.cross_validated",
    "jackknife_plus": "selection.intervals",
    "scan_csv": "data.files",
    "scan_parquet": "data.files",
    "scan_svmlight": "data.files",
    "from_arrow": "data.streams",
    "from_dask": "data.engines.dask",
    "save": "modelfile",
    "load": "modelfile",
    "verify": "modelfile",
    "threads": "runtime",
}

__all__ = [
    "Bootstrap",
    "CrossValidated",
    "Folds",
    "Functions",
    "LinearRegression",
    "Polynomial",
    "Ridge",
    "TableEncoder",
    "from_arrow",
    "from_dask",
    "jackknife_plus",
    "load",
    "save",
    "scan_csv",
    "scan_parquet",
    "scan_svmlight",
    "threads",
    "verify",
]

if TYPE_CHECKING:
    from certifit.data.engines.dask import from_dask
    from certifit.data.files import scan_csv, scan_parquet, scan_svmlight
    from certifit.data.streams import from_arrow
    from certifit.maps import Functions, Polynomial, TableEncoder
    from certifit.modelfile import load, save, verify
    from certifit.models.linear import LinearRegression, Ridge
    from certifit.runtime import threads
    from certifit.selection.cross_validated import CrossValidated
    from certifit.selection.intervals import jackknife_plus
    from certifit.selection.splits import Bootstrap, Folds


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'certifit' has no attribute {name!r}")
    value = getattr(import_module(f"certifit.{_PUBLIC[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
