"""The shape of the package: a model is declared once, and nothing above `models/` finds out what it is by itself.

The tables of what is still allowed only shrink: an entry goes when its file no longer needs it.
"""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import certifit
import certifit.models
from benchmarks.size import lines_of_rooms

PACKAGE, ROOT = Path(certifit.__file__).parent, Path(__file__).parent.parent
ABOVE = ("exact", "evaluation", "selection", "modelfile", "report", "cli")
MOST_ANY = 350  # lines of models, selection and modelfile with the word
MOST_LINES = 500

# What estimators of scikit-learn have too: selection and evaluation take those, and may ask.
CONTRACT = {
    "classes_", "coef_", "decision_function", "fit", "get_params", "intercept_", "n_features_in_", "feature_names_in_",
    "partial_fit", "predict", "predict_log_proba", "predict_proba", "score", "set_params", "transform",
}  # fmt: skip
TAKES_FOREIGN = ("evaluation", "selection")
NOT_MODELS = {"inference", "loss", "signal", "values"}  # what is asked, where it is no model

LONG_FILES = {"statistics/remainders.py"}

# Lines of Python by room, families of models each by itself. Only a change whose task states a budget raises one, by at
# most that, in a commit of its own; `python -m benchmarks.size` shows where lines stand.
BUDGET = {
    "certifit": 591, "cli": 4_078, "data": 8_459, "demo": 11, "evaluation": 7_636, "exact": 2_379, "inference": 1_005,
    "maps": 3_743, "mathematics": 4_937, "minimise": 3_402, "modelfile": 2_747, "models": 3_937,
    "models/adaboost": 923, "models/adaboost_r2": 661, "models/boosting": 2_673, "models/calibrated": 986,
    "models/discriminant": 2_123, "models/ensembles": 757, "models/forest": 1_435, "models/glm": 9_461,
    "models/huber": 1_914, "models/kernel": 2_625, "models/lasso": 2_028, "models/least_squares": 4_484,
    "models/linear_svm": 1_495, "models/local": 1_352, "models/naive_bayes": 829, "models/network": 2_252,
    "models/pca": 1_794, "models/peers": 908, "models/perceptron": 919, "models/quantile": 1_330, "models/svm": 2_742,
    "models/trees": 3_336, "report": 9_214, "selection": 8_707, "statistics": 4_289,
}  # fmt: skip


def files(*folders: str) -> list[str]:
    paths = [path for folder in folders for path in (PACKAGE / folder).rglob("*.py")]
    return sorted(path.relative_to(PACKAGE).as_posix() for path in paths)


@cache
def tree(file: str) -> ast.Module:
    return ast.parse((PACKAGE / file).read_text())


def is_protocol(cls: type) -> bool:
    return bool(getattr(cls, "_is_protocol", False))


@cache
def our_classes() -> frozenset[type]:
    """Estimators, and what they derive from, of every module in models/."""
    names = [found.name for found in pkgutil.walk_packages(certifit.models.__path__, "certifit.models.")]
    members = [cls for name in names for _, cls in inspect.getmembers(import_module(name), inspect.isclass)]
    ours = {cls for cls in members if cls.__module__.startswith("certifit.models") and not is_protocol(cls)}
    estimators = [cls for cls in ours if issubclass(cls, BaseEstimator)]
    return frozenset(cls for cls in ours if any(cls in estimator.__mro__ for estimator in estimators))


@cache
def our_attributes() -> frozenset[str]:
    """What a model of ours may be asked for: its methods, its parameters, and what a fit leaves."""
    names = {name for cls in our_classes() for name in vars(cls) if not name.startswith("_")}
    for cls in our_classes():
        names |= set(inspect.signature(cls).parameters)
    for file in files("models"):
        names |= {
            node.attr
            for node in ast.walk(tree(file))
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr.endswith("_")
        }
    return frozenset(names - {"args", "kwargs"})


def questions(file: str) -> Iterator[str]:
    """`hasattr`, `getattr` with a default and `isinstance` about models of ours, with their lines."""
    known = our_attributes() - (CONTRACT if file.startswith(TAKES_FOREIGN) else set())
    classes = {cls.__name__ for cls in our_classes()}
    for node in ast.walk(tree(file)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            continue
        name, args = node.func.id, node.args
        if name == "hasattr" or (name == "getattr" and len(args) == 3):
            is_model = getattr(args[0], "id", getattr(args[0], "attr", "")) not in NOT_MODELS
            is_about_ours = is_model and (not isinstance(args[1], ast.Constant) or args[1].value in known)
        elif name in ("isinstance", "issubclass"):
            parts = ast.walk(args[1])
            is_about_ours = any(getattr(part, "id", getattr(part, "attr", "")) in classes for part in parts)
        else:
            continue
        if is_about_ours:
            yield f"{file}:{node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize("folder", ABOVE)
def test_nothing_above_models_asks_what_a_model_of_ours_is(folder):
    """`models/adapter.py` is the place to ask."""
    for file in files(folder):
        asked = list(questions(file))
        assert not asked, "\n".join(asked)


def test_the_family_that_shows_the_way_is_known_to_the_table_alone():
    """CONTRIBUTING.md lists the files of quantile regression: its folder, a test, a page, a line in two tables."""
    inside = files("models/quantile")
    named = {
        file for file in files("") if re.search(r"models\.quantile|QuantileRegressor", (PACKAGE / file).read_text())
    }
    assert named - set(inside) == {"models/table.py"}
    beside = [ROOT / "tests/models/quantile/test_quantile.py", ROOT / "docs/quantile.md"]
    assert all(path.exists() for path in beside)
    assert len(inside) + len(beside) + len(["models/table.py", "tests/learners.py"]) <= 12


def test_fit_has_one_body():
    """Every class has its own arguments, which scikit-learn reads, and hands them on."""
    for file in files("models"):
        for cls in (node for node in ast.walk(tree(file)) if isinstance(node, ast.ClassDef)):
            for method in cls.body:
                if isinstance(method, ast.FunctionDef) and method.name == "fit":
                    body = method.body[bool(ast.get_docstring(method)) :]
                    is_one_line = len(body) == 1 and ast.unparse(body[0]).startswith("return self._fit(")
                    assert is_one_line, f"{file}:{method.lineno}"


def test_what_has_a_type_says_it():
    lines = [line for file in files("models", "selection", "modelfile") for line in (PACKAGE / file).open()]
    assert sum(bool(re.search(r"\bAny\b", line)) for line in lines) <= MOST_ANY


def test_no_file_is_long():
    long = {file for file in files("") if len((PACKAGE / file).read_text().splitlines()) > MOST_LINES}
    assert long <= LONG_FILES


def test_no_room_is_over_its_budget():
    over = [
        f"{room}: {lines:,} lines, {BUDGET.get(room, 0):,} are its budget: {lines - BUDGET.get(room, 0):,} too many"
        for room, lines in lines_of_rooms().items()
        if lines > BUDGET.get(room, 0)
    ]
    assert not over, "\n".join(over)
