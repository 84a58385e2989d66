"""A likelihood without a maximum: the command line takes a penalty, or says that what it writes is not proven."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import certifit as cf

DIRECTION = "the direction +1 claim -1 moves 274 rows to the side of the target"


@pytest.fixture
def counts(tmp_path):
    """mini.csv: n of 400 rows, of which 126 are not 0; the flag `claim` says which."""
    q = np.random.default_rng(1)
    x, z = q.normal(size=(2, 400)).round(4)
    n = q.poisson(np.exp(-1 + 0.3 * x))
    pd.DataFrame({"x": x, "z": z, "n": n, "claim": n > 0}).to_csv(tmp_path / "mini.csv", index=False)
    assert (n == 0).sum() == 274
    return tmp_path


def test_auto_takes_the_penalised_model_and_its_first_warning_is_the_proof(cli, counts):
    result = cli("fit", "mini.csv", "-t", "n", "-o", "out", "--cv", "3")
    assert result.exit_code == 0, result.output
    report = json.loads((counts / "out" / "report.json").read_text())
    assert report["validation"]["chosen"] == "Poisson ridge" and report["certificate"]["holds"]
    first = report["warnings"][0]
    assert "Poisson regression was passed over" in first["title"] and DIRECTION in first["text"]
    assert "Add a penalty" not in first["text"]  # it has one
    assert "Poisson ridge was taken: Poisson regression has no best fit" in result.output
    printed = " ".join(result.output.split())
    assert DIRECTION in printed and "--model poisson" not in printed
    assert DIRECTION in (counts / "out" / "report.html").read_text()
    assert cf.load(counts / "out" / "model.certifit").certificate_.holds


@pytest.mark.parametrize("model", [("poisson",), ("poisson-ridge", "--alpha", "0")], ids=" ".join)
def test_a_model_that_was_asked_for_is_written_and_not_proven(cli, counts, model):
    result = cli("fit", "mini.csv", "-t", "n", "-o", "out", "--cv", "3", "--model", *model)
    assert result.exit_code == 1, result.output
    report = json.loads((counts / "out" / "report.json").read_text())
    assert report["warnings"][0]["level"] == "bad" and DIRECTION in report["warnings"][0]["text"]
    lines = {row["name"]: (row["determined"], row["p"] is not None) for row in report["coefficients"]["rows"]}
    assert lines == {"intercept": (False, False), "x": (True, True), "z": (True, True), "claim": (False, False)}
    assert "limiting model" in " ".join(report["coefficients"]["notes"])
    assert (counts / "out" / "report.html").exists()
    certificate = cf.load(counts / "out" / "model.certifit").certificate_
    assert not certificate.holds and DIRECTION in certificate.sentences()[0]
    assert DIRECTION in " ".join(cli("inspect", "out/model.certifit").output.split())
