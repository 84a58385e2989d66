import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from certifit.cli import main, models


@pytest.fixture(autouse=True)
def compares_all(request, monkeypatch):
    """`auto` compares sums over columns alone; tests of the whole comparison are marked compares_all."""
    if "compares_all" not in request.keywords:
        quick = {goal: tuple(kind for kind in kinds if models.KINDS[kind].command.work is None)
                 for goal, kinds in models.COMPARED.items()}  # fmt: skip
        monkeypatch.setattr(models, "COMPARED", quick)


@pytest.fixture
def cli(tmp_path, monkeypatch):
    """Run a command in an empty folder, in this process."""
    monkeypatch.chdir(tmp_path)
    return lambda *args: CliRunner().invoke(main, [str(arg) for arg in args])


@pytest.fixture
def shell(tmp_path):
    """Run a command as a process of its own."""

    def run(*args, code=None, **options):
        command = [sys.executable, "-c", code, *args] if code else [sys.executable, "-m", "certifit", *args]
        options = {"cwd": tmp_path, "capture_output": True, "text": True} | options
        return subprocess.run([str(part) for part in command], check=False, **options)

    return run


@pytest.fixture
def data(tmp_path):
    """data.csv: y = 1 + 2 a - 3 b + noise; w a weight; d = a + 2 b in dependent.csv."""
    rng = np.random.default_rng(0)
    a, b, noise = rng.normal(size=(3, 120)).round(3)
    y, w = 1 + 2 * a - 3 * b + 0.2 * noise, np.arange(120) % 3 + 1
    write(tmp_path / "data.csv", {"a": a, "b": b, "y": y})
    write(tmp_path / "weighted.csv", {"w": w, "a": a, "b": b, "y": y})
    write(tmp_path / "dependent.csv", {"a": a, "b": b, "d": a + 2 * b, "y": y})
    write(tmp_path / "shuffled.csv", {"extra": a * 0, "b": b, "y": y, "a": a})
    return tmp_path / "data.csv"


def write(path, columns):
    lines = [",".join(columns)]
    lines += [",".join(repr(float(value)) for value in row) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="session")
def kept(tmp_path_factory):
    """(bytes of a file, options) -> what a fit of it said, and the folder that it wrote."""
    return {}, tmp_path_factory.mktemp("kept")


@pytest.fixture
def fitted(cli, kept):
    """fitted(file, *options, out=...) -> what `certifit fit` says; a fit that another test has made is copied."""
    fits, folder = kept

    def run(file, *options, out="out"):
        key = (Path(file).read_bytes(), options)
        if key not in fits:
            place = folder / str(len(fits))
            result = cli("fit", file, *options, "--out", place)
            assert result.exit_code == 0, result.output
            fits[key] = result, place
        result, place = fits[key]
        shutil.copytree(place, out)
        return result

    return run


@pytest.fixture
def saved(fitted, data):
    """A fit of data.csv in the folder `out`."""
    fitted(data, "-t", "y")
    return data.parent / "out"
