import csv
from pathlib import Path

import certifit as cf
from certifit import demo


def test_the_demo_names_the_repeated_column_and_then_gives_p_values_and_runs_twice(cli):
    result = cli("demo")
    assert result.exit_code == 0, result.output
    assert "sched_minutes = 60 hour + minute" in result.stdout
    assert "p-value" in result.stdout
    assert "carrier, 14 levels" in result.stdout
    assert "13 of 3,000 rows" in result.stdout and "year: left out" in result.stdout
    assert result.stdout.count("file://") == 2
    assert "Error of arr_delay on new rows, 10 folds" in result.stdout and "mean of arr_delay" in result.stdout
    assert "Least squares on codes was taken" in result.stdout
    first, second = Path("certifit-demo/all-columns"), Path("certifit-demo/without-sched_minutes")
    assert "sched_minutes = 60 hour + minute" in (first / "report.html").read_text()
    assert cf.load(second / "model.certifit").inference_ is not None
    assert cli("verify", second / "model.certifit", demo.path()).exit_code == 0
    result = cli("demo", "--out", "certifit-demo")
    assert result.exit_code == 0
    assert "Replaced the earlier fit" in result.stdout


def test_bundled_data_are_small_with_categories_gaps_and_a_licence():
    assert demo.path().stat().st_size < 150_000
    with open(demo.path(), newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3000
    texts = {"carrier": 14, "origin": 3, "year": 1}
    assert {name: len({row[name] for row in rows}) for name in texts} == texts
    assert sum(row["visib"] == "" for row in rows) == 13
    assert all(float(row[name]) is not None for row in rows for name in set(row) - {*texts, "visib"})
    assert all(int(r["sched_minutes"]) == 60 * int(r["hour"]) + int(r["minute"]) for r in rows)
    assert "CC0" in (demo.path().parent / "README.md").read_text()
