"""Samples of the long scripts: Ctrl-C inside long fits, and fits with little memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
HANG = 1200  # seconds until a process counts as hung; no measure of speed
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="reads /proc")]


def run(script: str, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / script), *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG)


def test_ctrl_c_ends_long_fits_and_leaves_the_estimator_as_it_was():
    names = ["LogisticRegression(sgd)", "CrossValidated(lasso), wide", "softmax, many classes"]
    done = run("interrupts.py", "--moments", "0.3", "--longest", "inf", "--only", *names)
    assert done.returncode == 0, done.stdout + done.stderr


def test_little_memory_is_an_error_or_the_same_fit():
    done = run(
        "little_memory.py", "--steps", "4", "--only", "LinearRegression", "Lasso, wide", "softmax", "TextBinarizer"
    )
    assert done.returncode == 0, done.stdout + done.stderr
