"""Some cases of the hunt over ordinary tables, and that it catches what is planted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.ordinary.__main__ import replay, run, table_of
from tests.ordinary.estimators import ESTIMATORS
from tests.ordinary.judge import examined
from tests.ordinary.tables import folder

pytestmark = pytest.mark.skipif(folder() is None, reason="the folder shared/data with the real tables is missing")


def test_no_claim_about_an_ordinary_table_is_false_and_a_run_resumes(tmp_path: Path) -> None:
    wanted = [(name, 0) for name in ESTIMATORS]
    records = run(wanted, 0, tmp_path / "records.jsonl")
    assert not [record for record in records if record["verdict"] in ("false", "crash", "slow", "unknown")]
    assert run(wanted, 0, tmp_path / "records.jsonl") == records
    assert f"{'Lasso':<30}     1" in table_of(records)


def test_a_case_is_replayed_as_a_script_and_a_claim_that_is_too_small_is_caught() -> None:
    script = replay("Ridge", 0, 3)
    names: dict[str, Any] = {}
    exec(script, names)
    row = ESTIMATORS["Ridge"]
    model, problem = names["model"], row.problem(0, 3)
    assert model.certificate_.holds and "# verdict: 'right'" in script
    model.fit = lambda *_: model  # as it stands, with a coefficient moved
    model.coef_ = model.coef_ * (1 + 1e-3)
    assert examined(problem, model, row.truth)["verdict"] == "false"
    model.certificate_ = replace(model.certificate_, value=1.0)
    assert examined(problem, model, row.truth)["verdict"] == "refused"
