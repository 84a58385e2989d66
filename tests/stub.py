"""The stub of the package, made from its public names: python -m tests.stub writes src/certifit/__init__.pyi.

Names are loaded on first use, which type checkers cannot follow; the stub tells them where each stands.
"""

from __future__ import annotations

from collections import defaultdict
from importlib import import_module
from pathlib import Path

import certifit

PATH = Path(certifit.__file__).with_name("__init__.pyi")


def stub() -> str:
    """The text of the stub."""
    names = defaultdict(list)
    for name, module in certifit._public().items():
        is_module = not hasattr(import_module(f"certifit.{module}"), name) or module == name
        names[module.rpartition(".")[0] if is_module else module].append(name)
    lines = ['"""Made by python -m tests.stub. Do not edit."""', "", "__version__: str", ""]
    for module in sorted(names):
        place = f"certifit.{module}".rstrip(".")
        lines += [f"from {place} import {name} as {name}" for name in sorted(names[module], key=_order)]
    return "\n".join([*lines, ""])


def _order(name: str) -> tuple[bool, bool, str]:
    """Constants, then classes, then functions."""
    return not name.isupper(), not name[0].isupper(), name


if __name__ == "__main__":
    PATH.write_text(stub())
