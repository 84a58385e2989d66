"""Model files: one safetensors file, no code, no rows; read within limits, written whole or not at all.

Names are loaded on first use: what looks into a file needs no model classes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from certifit.modelfile.container import ModelFileError

if TYPE_CHECKING:
    from certifit.modelfile.files import Inspection, inspect, load, save
    from certifit.modelfile.verification import Verification, verify

__all__ = ["Inspection", "ModelFileError", "Verification", "inspect", "load", "save", "verify"]

_MODULES = {
    "files": ("Inspection", "inspect", "load", "save"),
    "verification": ("Verification", "verify"),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'certifit.modelfile' has no attribute {name!r}")
    return getattr(import_module(f"certifit.modelfile.{_PLACES[name]}"), name)
