"""python -m tests.golden.mutants [--seed S] [--places N]: whether the net is red when the package is wrong.

Places are drawn by a seed from lines that the net's fits execute, four kinds in turn: a sign or a comparison of a
solver, a model or a certificate; a tolerance there; a rule of the folds; an exit code of the command line. Each is
changed in a copy of the package, and tables are asked until one differs. Lines about sizes, memory, rounding allowances
and words are no places: an answer need not change with them.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import certifit
from tests.golden.answers import answers
from tests.golden.tables import TABLES

PACKAGE = Path(certifit.__file__).parent
ROOT = Path(__file__).parents[2]
ASKED = ("plain", "two_classes", "counts", "amounts", "longley", "constant_target", "csv_classes", "weighted")
OPPOSITE = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
}  # fmt: skip
NEUTRAL = re.compile(
    r"eps|EPS|round|range|len\(|size|bytes|memory|raise|\bf\"|shape|n_rows|n_threads|assert|time|MOST|work"
)
KINDS = {
    "sign": r"models/.*(solver|certificate|task|model|newton|scores|columns)\.py|statistics/(factor|residual)\.py",
    "tolerance": r"models/.*(solver|certificate|newton)\.py",
    "fold rule": r"selection/folds/.*\.py|models/.*/folds\.py|selection/compare/(choice|cross_validated|trial)\.py",
    "exit code": r"cli/(fit|verify|predict|request|errors|inspect)\.py",
}
SITE = """import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__]
"""
ASK = """import sys; from tests.golden.__main__ import compared
for name in sys.argv[1:]:
    if lines := compared(name):
        sys.exit(f"{len(lines)} differences, first: {lines[0]}")
"""


def executed() -> dict[str, set[int]]:
    """File of the package -> lines that the tables asked execute."""
    seen: dict[str, set[int]] = {}

    def trace(frame: Any, event: str, _: object) -> Any:
        name = frame.f_code.co_filename
        if event == "call":
            return trace if name.startswith(str(PACKAGE)) else None
        if event == "line":
            seen.setdefault(name[len(str(PACKAGE)) + 1 :], set()).add(frame.f_lineno)
        return trace

    sys.settrace(trace)
    try:
        for name in ASKED:
            answers(name)
    finally:
        sys.settrace(None)
    return seen


def places(kind: str, lines: dict[str, set[int]]) -> list[tuple[str, ast.expr, str]]:
    """Every place of a kind: file, what stands there, what takes its place."""
    found = []
    for file in sorted(lines):
        if re.fullmatch(KINDS[kind], file):
            text = (PACKAGE / file).read_text().splitlines()
            for node, changed in candidates(kind, ast.parse("\n".join(text))):
                is_one_line = node.lineno == node.end_lineno and node.lineno in lines[file]
                if is_one_line and (kind == "exit code" or not NEUTRAL.search(text[node.lineno - 1])):
                    found.append((file, node, changed))
    return found


def candidates(kind: str, tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    inside = {id(part) for function in functions for statement in function.body for part in ast.walk(statement)}
    for node in ast.walk(tree):
        if id(node) not in inside:
            continue
        if kind == "tolerance":
            is_read = isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load)
            if is_read and ast.unparse(node).endswith(("tol", "tolerance")):
                yield node, f"(1e-12 * {ast.unparse(node)})"
        elif kind == "exit code":
            if isinstance(node, ast.Return) and re.search(r"NOT_PROVEN|\b[0123]\b", ast.unparse(node)):
                assert node.value is not None
                yield node.value, f"(7 + ({ast.unparse(node.value)}))"
        elif isinstance(node, ast.BinOp) and type(node.op) in OPPOSITE:
            node.op = OPPOSITE[type(node.op)]()
            yield node, f"({ast.unparse(node)})"
        elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OPPOSITE:
            node.ops[0] = OPPOSITE[type(node.ops[0])]()
            yield node, f"({ast.unparse(node)})"


def is_red(package: Path, file: str, node: ast.expr, changed: str) -> str:
    """What differs with this change, empty if nothing does."""
    path = package / "certifit" / file
    text = path.read_text()
    lines = text.splitlines()
    line = lines[node.lineno - 1].encode()
    lines[node.lineno - 1] = (line[: node.col_offset] + changed.encode() + line[node.end_col_offset :]).decode()
    path.write_text("\n".join(lines) + "\n")
    print(f"{file}:{node.lineno}: {lines[node.lineno - 1].strip()}", flush=True)
    environment = os.environ | {"PYTHONPATH": f"{package}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", ASK, *ASKED, *(name for name in TABLES if name not in ASKED)]
    try:
        run = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False
        )
        return (run.stderr.strip().splitlines() or ["an end without words"])[-1] if run.returncode else ""
    except subprocess.TimeoutExpired:
        return "no end within ten minutes"
    finally:
        path.write_text(text)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--places", type=int, default=10)
    given = parser.parse_args()
    draw, lines, n_red = random.Random(given.seed), executed(), 0
    by_kind = {kind: places(kind, lines) for kind in KINDS}
    for found in by_kind.values():
        draw.shuffle(found)
    print(", ".join(f"{len(found)} places of kind {kind}" for kind, found in by_kind.items()), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(PACKAGE, Path(folder, "certifit"), ignore=shutil.ignore_patterns("__pycache__"))
        for core in certifit.__path__:  # of an editable install in another folder than the source
            for file in Path(core).glob("_core_*"):
                shutil.copy(file, Path(folder, "certifit"))
        # Here and in the processes that start: an editable install would answer imports before PYTHONPATH is asked.
        Path(folder, "sitecustomize.py").write_text(SITE)
        for number in range(given.places):
            kind = list(KINDS)[number % len(KINDS)]
            said = is_red(Path(folder), *by_kind[kind].pop())
            n_red += bool(said)
            print(f"    {kind}: {'red, ' + said[:150] if said else 'GREEN'}", flush=True)
    print(f"red in {n_red} of {given.places}")
    return n_red < given.places


if __name__ == "__main__":
    sys.exit(main())
