"""Classes by margins on the command line: scored by the share of right rows, without a word on probabilities."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest


@pytest.mark.parametrize("kind", ["svm", "linear-svm"])
def test_margins_are_fitted_reported_verified_and_predicted(cli, kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = np.where(X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=120) > 0, "in", "out")
    pd.DataFrame(X, columns=["a", "b"]).assign(y=y).to_csv("rows.csv", index=False)
    fit = cli("fit", "rows.csv", "--target", "y", "--model", kind, "--cv", "3", "--out", "out")
    assert fit.exit_code == 0, fit.output
    assert "Error rate of y on new rows, 3 folds" in fit.output and "converged      yes, proven" in fit.output
    facts = json.loads(Path("out/report.json").read_text())
    best, null = facts["validation"]["rows"][0], facts["validation"]["rows"][-1]
    assert best["error"] < null["error"] and facts["classes"] is None
    kept = "support vectors: rows of the fit"
    for page in ("MODEL_CARD.md", "report.html"):
        text = Path("out", page).read_text()
        assert (kept in text) == (kind == "svm") and ("holds no row" in text) == (kind != "svm")
    assert cli("verify", "out/model.certifit", "rows.csv").exit_code == 0
    assert cli("predict", "out/model.certifit", "rows.csv", "--out", "new.csv").exit_code == 0
    assert (pd.read_csv("new.csv")["prediction"] == y).mean() > 0.85


def test_words_of_free_text_are_columns_of_a_linear_machine(cli):
    rng = np.random.default_rng(1)
    good, bad = ["free prize now call this number today", "win cash claim your prize by text"], [
        "are you coming home for dinner tonight", "see you at the station in an hour then"]  # fmt: skip
    text = [f"{rng.choice(good if k % 2 else bad)} {k} times over and over again, and more of it" for k in range(60)]
    pd.DataFrame({"text": text, "y": np.where(np.arange(60) % 2, "spam", "ham")}).to_csv("rows.csv", index=False)
    asked = ("--target", "y", "--texts", "text", "--model", "linear-svm", "--alpha", "0.1", "--cv", "3", "--out", "out")
    fit = cli("fit", "rows.csv", *asked)
    assert fit.exit_code == 0, fit.output
    assert "yes, proven" in fit.output
