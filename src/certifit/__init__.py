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
    "scan_csv": "data.files",
    "save": "modelfile",
    "load": "modelfile",
    "verify": "modelfile",
    "threads": "runtime",
}

__all__ = [
    "Functions",
    "LinearRegression",
    "Polynomial",
    "Ridge",
    "load",
    "save",
    "scan_csv",
    "threads",
    "verify",
]

if TYPE_CHECKING:
    from certifit.data.files import scan_csv
    from certifit.maps import Functions, Polynomial
    from certifit.modelfile import load, save, verify
    from certifit.models.linear import LinearRegression, Ridge
    from certifit.runtime import threads


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'certifit' has no attribute {name!r}")
    value = getattr(import_module(f"certifit.{_PUBLIC[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
