"""Every example in a docstring gives what it shows."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import certifit

PACKAGE = Path(certifit.__file__).parent
MODULES = sorted(
    "certifit." + path.relative_to(PACKAGE).as_posix().removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    for path in PACKAGE.rglob("*.py")
    if path.name != "__main__.py" and path.parent != PACKAGE / "demo"
)
MODULES = ["certifit" if name == "certifit.__init__" else name for name in MODULES]


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.slow
def test_examples_give_what_they_show(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with np.printoptions():
        failed, _ = doctest.testmod(import_module(name), extraglobs={"np": np})
    assert failed == 0


def test_there_are_examples_of_what_users_call():
    finder = doctest.DocTestFinder()
    shown = {test.name.split(".")[-1] for name in MODULES for test in finder.find(import_module(name)) if test.examples}
    assert {"LinearRegression", "Ridge", "Polynomial", "verify"} <= shown


@pytest.mark.parametrize("name", certifit.__all__)
def test_every_public_name_is_documented(name):
    assert (getattr(certifit, name).__doc__ or "").strip()
