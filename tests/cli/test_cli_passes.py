"""How often `certifit fit` parses a file, counted where the parser is."""

import json
import re

import numpy as np
import pytest

from certifit.data import kept as rows_kept
from certifit.data.formats import csv, csv_reader

LOOK = 1  # the pass that settles the types of the columns
BUDGET = 2000  # bytes: less than the rows of `file` take


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(2, 90)).round(3)
    noisy = a - b + rng.logistic(size=90)
    rows = zip(a, b, rng.choice(["u", "v"], 90), noisy.round(3), noisy > 0, np.digitize(noisy, [-1, 1]), strict=True)
    path = tmp_path_factory.mktemp("passes") / "rows.csv"
    lines = [f"{a},{b},{c},{y},{'yes' if two else 'no'},{'klm'[three]}" for a, b, c, y, two, three in rows]
    path.write_text("\n".join(["a,b,c,quantity,two,three", *lines]) + "\n")
    return path


@pytest.fixture
def parses(monkeypatch):
    """One entry per pass that parses a file."""
    seen = []
    batches = csv_reader.Reader.batches
    monkeypatch.setattr(csv_reader.Reader, "batches", lambda self: (seen.append(self.path), batches(self))[1])
    return seen


def fit(cli, file, target, out, *options):
    result = cli("fit", file, "--target", target, "--columns", "a,b,c", "--out", out, *options)
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.slow
@pytest.mark.parametrize("target", ["quantity", "two", "three"])
def test_a_file_is_parsed_once_where_its_rows_fit(cli, file, parses, target):
    fit(cli, file, target, "out", "--cv", 3)
    assert len(parses) == LOOK


@pytest.mark.slow
def test_a_file_is_parsed_thrice_at_most_where_its_rows_are_written(cli, file, parses, tmp_path, monkeypatch):
    options = ("--model", "logistic", "--cv", 2)
    fit(cli, file, "two", "kept", *options)
    parses.clear()
    for module in (rows_kept, csv):
        monkeypatch.setattr(module, "memory_limit", lambda: BUDGET)
    fit(cli, file, "two", "written", *options)
    assert len(parses) <= LOOK + 2
    kept, written = (json.loads((tmp_path / name / "report.json").read_text()) for name in ("kept", "written"))
    assert kept["certificate"] == written["certificate"]
    assert kept["validation"] == written["validation"]


def test_without_a_temporary_file_every_pass_parses_and_the_number_is_told(cli, file, parses, monkeypatch):
    for module in (rows_kept, csv):
        monkeypatch.setattr(module, "memory_limit", lambda: BUDGET)
    result = fit(cli, file, "quantity", "out", "--model", "linear", "--cv", "0", "--no-spill")
    assert len(parses) > LOOK + 2
    assert "a temporary file is not allowed" in result.stderr
    told = int(re.search(r"some ([\d,]+) passes", result.stderr)[1])
    assert told / 1.5 < len(parses) < told * 1.5
