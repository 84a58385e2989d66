"""Imports go only from a higher layer to a lower one, at any level of a file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import certifit

PACKAGE = Path(certifit.__file__).parent
LAYERS = {
    "__version__": 0,
    "runtime": 0,
    "demo": 0,  # rows, and a path to them
    "data": 1,
    "statistics": 2,
    "maps": 3,
    "mathematics": 4,
    "minimise": 5,
    "inference": 6,
    "models": 8,
    "exact": 8.5,  # asks fitted models for their rows and parameters
    "evaluation": 9,
    "selection": 10,
    "modelfile": 11,
    "report": 12,
    "cli": 13,
    "__init__": 14,
    "__main__": 14,
}
# What a solver returns draws itself: the picture is loaded when `plot` is called, and no layer learns of it.
DRAWS = {"minimise/minimum.py", "minimise/zero.py"}
FILES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))
HEAVY = {"numpy", "scipy", "sklearn", "pyarrow", "pandas", "polars", "matplotlib", "jinja2", "safetensors"}


def layer(module: str) -> str:
    """'data.source' -> 'data'; '' (the package itself) -> '__init__'."""
    name = module.split(".", maxsplit=1)[0] or "__init__"
    return "runtime" if name.startswith("_core") else name


def imports(tree: ast.AST, module: str) -> Iterator[tuple[str, int]]:
    """(module, line) of everything imported from certifit, by any form of import, without the prefix."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names if alias.name != "certifit"]  # what is used of it counts
        elif isinstance(node, ast.Attribute):
            found = [f"certifit.{node.attr}"] if getattr(node.value, "id", "") == "certifit" else []
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = ["certifit", *module.split(".")][: -node.level]
                base = ".".join([*above, base] if base else above)
            # `from certifit import data` names a module, `from certifit.data import Block` does not
            found = [f"{base}.{alias.name}" for alias in node.names] if base == "certifit" else [base]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "import_module":
            found = [node.args[0].value] if node.args and isinstance(node.args[0], ast.Constant) else []
        else:
            continue
        for name in found:
            if name == "certifit" or name.startswith("certifit."):
                yield name.removeprefix("certifit").removeprefix("."), node.lineno


def module_of(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@pytest.mark.parametrize("file", FILES)
def test_a_layer_imports_only_what_lies_below_it(file):
    module = module_of(file)
    own = LAYERS[layer(module)]
    public = certifit._public()
    for name, line in imports(ast.parse((PACKAGE / file).read_text()), module):
        target = layer(public.get(name, name))
        if file in DRAWS and name.startswith("evaluation.pictures"):
            continue
        allowed = target == layer(module) or LAYERS[target] < own
        assert allowed, f"{file}:{line}: {layer(module)} ({own}) imports {name} ({LAYERS[target]})"


@pytest.mark.parametrize("file", [file for file in FILES if file.endswith("certificate.py")])
def test_no_solver_takes_part_in_a_certificate(file):
    names = [name for name, _ in imports(ast.parse((PACKAGE / file).read_text()), module_of(file))]
    assert not [name for name in names if name.endswith("solver") or name.startswith("minimise")]


@pytest.mark.parametrize("file", ["__init__.py", "runtime.py", *(f for f in FILES if f.startswith("cli/"))])
def test_what_must_start_fast_imports_nothing_heavy_at_module_level(file):
    for node in ast.parse((PACKAGE / file).read_text()).body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not HEAVY & {name.split(".")[0] for name in names}


def test_every_folder_has_its_place_in_the_table():
    assert {layer(module_of(file)) for file in FILES} <= set(LAYERS)


@pytest.mark.parametrize(
    "text, module, expected",
    [
        ("import certifit.cli", "data.user_input", ["cli"]),
        ("def f():\n    from certifit.models import linear", "data.user_input", ["models"]),
        ("from certifit import threads", "data.user_input", ["threads"]),
        ("from ..models.base import x", "data.user_input", ["models.base"]),
        ("from . import source", "data.user_input", ["data"]),
        ("import_module('certifit.report')", "data.user_input", ["report"]),
        ("import certifit\nprint(certifit.Ridge)", "data.user_input", ["Ridge"]),
        ("import numpy", "data.user_input", []),
    ],
)
def test_every_form_of_import_is_seen(text, module, expected):
    assert [name for name, _ in imports(ast.parse(text), module)] == expected
