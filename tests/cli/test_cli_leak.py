"""A target that is made from the columns is the loudest warning: first in the page, the terminal and report.json."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

FORMULA = "total = a + b + 1/2 c - d"


@pytest.fixture
def frame():
    q = np.random.default_rng(5)
    found = pd.DataFrame(q.gamma(2.0, 10.0, size=(300, 5)).round(2), columns=list("abcde"))
    return found.assign(total=found["a"] + found["b"] + 0.5 * found["c"] - found["d"])


def fitted(cli, tmp_path, frame, target, *options):
    frame.to_csv(tmp_path / "d.csv", index=False)
    result = cli("fit", "d.csv", "-t", target, "-o", "out", "--cv", "3", *options)
    assert result.exit_code == 0, result.output
    folder = tmp_path / "out"
    return result.output, json.loads((folder / "report.json").read_text()), (folder / "report.html").read_text()


def check_of(report):
    return next(check for check in report["checks"] if check["name"] == "Leakage: columns that know the answer")


@pytest.mark.parametrize("options", [(), ("--model", "lasso"), ("--model", "ridge", "--alpha", "0.001")], ids=str)
def test_an_exact_sum_of_columns_is_spelt_out_first(cli, tmp_path, frame, options):
    output, report, page = fitted(cli, tmp_path, frame, "total", *options)
    first = report["warnings"][0]
    assert first["level"] == "bad" and FORMULA in first["title"] and "All 300 rows" in first["text"]
    assert output.lstrip().startswith(f"Warning: total is computed from other columns: {FORMULA}")
    banner = page.index('role="alert"')
    assert FORMULA in page[banner : page.index('id="answer"')]
    assert check_of(report)["level"] == "warn" and FORMULA in check_of(report)["text"]


def test_counts_that_are_sums_are_found_whatever_the_link(cli, tmp_path):
    q = np.random.default_rng(6)
    parts = pd.DataFrame({"casual": q.poisson(2.0, 300), "registered": q.poisson(3.0, 300), "x": q.normal(size=300)})
    parts = parts.assign(rentals=parts["casual"] + parts["registered"])
    _, report, _ = fitted(cli, tmp_path, parts, "rentals", "--model", "poisson")
    assert "rentals = casual + registered" in report["warnings"][0]["title"]


def test_a_score_that_is_too_good_to_be_true_is_loud_without_a_relation(cli, tmp_path, frame):
    frame = frame.assign(total=frame["total"] + 0.01 * np.random.default_rng(0).normal(size=300))
    output, report, _ = fitted(cli, tmp_path, frame, "total")
    first = report["warnings"][0]
    assert report["relation"] is None and first["level"] == "bad"
    assert first["title"].startswith("Too good to be true: R")
    assert output.lstrip().startswith("Warning: Too good to be true")
    assert check_of(report)["level"] == "warn"


def test_classes_that_are_ranked_without_a_mistake_are_too_good(cli, tmp_path):
    q = np.random.default_rng(1)
    x, z = q.normal(size=(2, 300))
    frame = pd.DataFrame({"x": x, "z": z, "y": np.where(x + z > 0, "yes", "no")})
    _, report, _ = fitted(cli, tmp_path, frame, "y", "--model", "logistic")
    assert "area under the ROC curve" in report["warnings"][0]["title"] and report["warnings"][0]["level"] == "bad"


def test_a_target_with_noise_is_not_suspected(cli, tmp_path, frame):
    frame = frame.assign(total=frame["total"] + 5 * np.random.default_rng(0).normal(size=300))
    _, report, _ = fitted(cli, tmp_path, frame, "total")
    assert not any(one["level"] == "bad" for one in report["warnings"])
    assert report["relation"] is None and check_of(report)["level"] == "ok"
