"""python -m benchmarks.size: how large the package is, by its syntax trees, and how much of it a fit enters.

Lines are those of the files as they stand, which `ruff format` keeps (`--check` says so). A code line has a token that
is no comment, and belongs to no docstring and no import. A numeric constant is a name of a module that is bound to a
number, or to arithmetic of numbers alone. An unusual literal is a float other than 0, 1, 2, 0.5 and the powers of ten
from 1e-3 to 1e3. Functions that a fit enters are counted by the profiler of the interpreter, each once, in a second
fit: the first has imported and remembered. `certifit fit` is a first one.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import certifit

PACKAGE = Path(certifit.__file__).parent
USUAL = {0.0, 1.0, 2.0, 0.5} | {10.0**power for power in range(-3, 4)}
COLUMNS = ("lines", "code", "constants", "literals", "functions", "classes")
SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def room_of(path: Path) -> str:
    """A folder of the package; in `models` a family's; the package itself where a file stands in none."""
    parts = path.relative_to(PACKAGE).parts
    if len(parts) == 1:
        return "certifit"
    return f"models/{parts[1]}" if parts[0] == "models" and len(parts) > 2 else parts[0]


def lines_of_rooms() -> Counter[str]:
    """Lines of Python files by room."""
    sizes: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        sizes[room_of(path)] += path.read_bytes().count(b"\n")
    return sizes


def measured(path: Path) -> Counter[str]:
    text = path.read_text()
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    return Counter(
        lines=text.count("\n"),
        code=len(code_lines(text, nodes)),
        constants=sum(len(names_of(node)) for node in tree.body if is_constant(node)),
        literals=sum(is_unusual(node) for node in nodes),
        functions=sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in nodes),
        classes=sum(isinstance(node, ast.ClassDef) for node in nodes),
    )  # fmt: skip


def code_lines(text: str, nodes: list[ast.AST]) -> set[int]:
    """Lines with a token of code: no docstring, comment, import or blank."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = {line for one in tokens if one.type not in SILENT for line in range(one.start[0], one.end[0] + 1)}
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom) or is_docstring(node):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def is_docstring(node: ast.AST) -> bool:
    """Also a string that stands alone behind a field."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def is_unusual(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is float and node.value not in USUAL


def is_constant(node: ast.AST) -> bool:
    """An assignment of a number, or of arithmetic of numbers."""
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return False
    legal = ast.Constant | ast.UnaryOp | ast.BinOp | ast.operator | ast.unaryop
    parts = list(ast.walk(node.value))
    numbers = [part.value for part in parts if isinstance(part, ast.Constant)]
    return all(isinstance(part, legal) for part in parts) and all(type(number) in (int, float) for number in numbers)


def names_of(node: Any) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def rooms() -> dict[str, Counter[str]]:
    sizes: dict[str, Counter[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        sizes.setdefault(room_of(path), Counter()).update(measured(path))
    return sizes


def entered(work: Callable[[], object]) -> int:
    """How many functions of the package `work` enters, each once; comprehensions are no functions."""
    seen: set[Any] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            seen.add(frame.f_code)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return sum(not code.co_name.startswith("<") for code in seen)


def fits() -> Iterator[tuple[str, int]]:
    """The functions that a fit enters."""
    from click.testing import CliRunner

    from certifit.cli import main

    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(500, 5)), rng.normal(size=500)
    y = X @ np.arange(5.0) + noise
    labels = np.where(y > 0, "above", "below")
    for name, model, target in (
        ("a lasso fit", certifit.Lasso(0.1), y),
        ("a logistic fit", certifit.LogisticRegression(), labels),
    ):
        fit = partial(model.fit, X, target)
        fit()
        yield name, entered(fit)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.csv")
        np.savetxt(path, np.column_stack([X, y]), delimiter=",", header="a,b,c,d,e,y", comments="")
        words = ["fit", str(path), "-t", "y", "-o", str(Path(folder, "out"))]
        yield "certifit fit", entered(lambda: CliRunner().invoke(main, words))


def main() -> None:
    ruff = Path(sys.executable).with_name("ruff")
    kept = ruff.exists() and subprocess.run([ruff, "format", "--check", "-q", PACKAGE], check=False).returncode == 0
    print(f"{PACKAGE.name}: {'as `ruff format` leaves it' if kept else 'NOT as `ruff format` leaves it, or no ruff'}\n")
    sizes = rooms()
    print(f"{'room':<26}" + "".join(f"{column:>11}" for column in COLUMNS) + f"{'per 1,000':>11}")
    total: Counter[str] = sum(sizes.values(), Counter())
    for room, counts in [*sizes.items(), ("all", total)]:
        share = 1000 * counts["literals"] / counts["lines"]
        print(f"{room:<26}" + "".join(f"{counts[column]:>11,}" for column in COLUMNS) + f"{share:>11.1f}")
    print("\nfunctions of the package that are entered by")
    for name, n_functions in fits():
        print(f"  {name:<24}{n_functions:>6,}")


if __name__ == "__main__":
    main()
