"""What the package answers is what it answered. What changes on purpose: `python -m tests.golden --update`."""

from __future__ import annotations

import inspect

import pytest

import certifit as cf
from tests.golden.__main__ import compared
from tests.golden.models import GROUPS
from tests.golden.tables import TABLES

ADVICE = "\nIf this is meant: python -m tests.golden --update {}, and the commit says why."
SLOW = ("plain", "iris", "two_classes", "higgs", "houses", "digits")


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", sorted(TABLES, key=lambda name: name not in SLOW))
def test_answers(name: str) -> None:
    lines = compared(name)
    assert not lines, "\n".join(["", *lines, ADVICE.format(name)])


def test_every_model_is_asked() -> None:
    """A newcomer among the public names joins a group of `models.py`."""
    public = {name for name in dir(cf) if inspect.isclass(getattr(cf, name)) and hasattr(getattr(cf, name), "fit")}
    asked = {type(model).__name__ for group in GROUPS.values() for model in group.values()}
    assert public - asked <= {"TableEncoder", "TextBinarizer", "Polynomial", "Functions"}  # maps: models have them
