"""Nothing that comes from data reaches a terminal as an escape, and nothing that is printed goes another way."""

import ast
import csv
from pathlib import Path

import numpy as np
import pytest

from certifit.cli import errors

HIDDEN = ["\x1b[31mred", "bell\x07", "\u202eright to left", "back\x08space", "csi\x9b31m"]
EVIL_FILE = "evil\x1b]0;title\x07\u202e.csv"


def is_safe(text):
    return all(c.isprintable() or c == "\n" for c in text)


@pytest.fixture
def hostile(cli, tmp_path):
    """A file with a hostile name, hostile columns, levels and labels."""
    rng = np.random.default_rng(0)
    rows = [[*rng.normal(size=2).round(3).tolist(), HIDDEN[i % 4], HIDDEN[(i // 4) % 2]] for i in range(80)]
    with open(tmp_path / EVIL_FILE, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([[HIDDEN[0], HIDDEN[1], HIDDEN[2], "=label\x1b[0m"], *rows])
    return cli


def test_no_command_passes_an_escape_on(hostile, tmp_path):
    target = "=label\x1b[0m"
    fits = [
        ("fit", EVIL_FILE, "-t", target, "-o", "classes", "--model", "logistic", "--cv", "0"),
        ("fit", EVIL_FILE, "-t", HIDDEN[0], "-o", "quantity", "--model", "linear", "--cv", "0"),
    ]
    model, evil = "classes/model.certifit", "evil\x1b[2J.certifit"
    (tmp_path / evil).write_text("no model")
    commands = [
        ("predict", model, EVIL_FILE, "-o", "-", "--proba"),
        ("predict", model, EVIL_FILE, "-o", "\x1b[31m.csv"),
        ("verify", model, EVIL_FILE),
        ("verify", "quantity/model.certifit", EVIL_FILE),
        ("inspect", model),
        ("inspect", model, "--json"),
        ("inspect", evil),
        ("inspect", "none\x1b[2J"),
        ("fit", EVIL_FILE, "-t", "no\x1b[31m\u202e", "-o", "x"),
        ("fit", EVIL_FILE, "-t", target, "-o", "x", "--columns", "\x1b[31m"),
        ("fit", "none\x9b.csv", "-t", "y", "-o", "x"),
        ("no\x1b[31m",),
        ("fit", "--no\x1b[31m"),
    ]
    for command in fits:
        result = hostile(*command)
        assert result.exit_code in (0, 1), result.output
        assert is_safe(result.output), command
    for command in commands:
        result = hostile(*command)
        assert result.exception is None or isinstance(result.exception, SystemExit), command
        assert is_safe(result.output), (command, result.output)


def test_a_warning_of_a_command_is_one_safe_line(capsys):
    errors._say_warning(UserWarning("column \x1b[31m\nx"), UserWarning, "file.py", 3)
    assert capsys.readouterr().err == "Warning: column \\x1b[31m x\n"


def test_commands_print_through_one_place():
    """`show` and `say` make lines safe; predictions are made harmless as they are written."""
    calls = [
        (path.name, getattr(node.func, "attr", getattr(node.func, "id", "")))
        for path in Path(errors.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
    ]
    assert {call for call in calls if call[1] in ("print", "echo", "secho", "print_exc")} == {("errors.py", "echo")}
