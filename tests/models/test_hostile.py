"""Every hostile case on every estimator: no crash, no hang, no NaN, no silent wrong answer, no unclear error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_factories import FACTORIES

HERE = Path(__file__).parent
BAD = ("unclear_error", "wrong_silent", "nan_output", "crash", "hang")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="every case runs in a forked child")
@pytest.mark.parametrize("name", FACTORIES)
def test_hostile_inputs_are_refused_in_words_or_fitted_right(name, tmp_path):
    path = tmp_path / "outcomes.json"
    command = [sys.executable, str(HERE.parent / "hostile.py"), "--factories", "hostile_factories:FACTORIES"]
    done = subprocess.run(
        [*command, "--only", name, "--json", str(path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    outcomes = json.loads(path.read_text())[name] if path.exists() else {}
    assert len(outcomes) > 90, done.stderr  # a transformer has no cases of targets
    assert {case: outcome for case, outcome in outcomes.items() if outcome[0] in BAD} == {}
