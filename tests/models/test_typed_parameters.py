"""Editors complete parameters: their types name the words that are legal, as the table of parameters has them."""

import re
from typing import Literal, get_args, get_origin, get_type_hints

import pytest

from certifit.models.table import LEARNERS

WORDS = [
    pytest.param(learner, name, re.findall(r"'([^']*)'", param.legal), id=f"{learner.key}-{name}")
    for learner in LEARNERS.values()
    for name, param in learner.params.items()
    if param.legal.startswith("one of '")
]


@pytest.mark.parametrize(("learner", "name", "words"), WORDS)
def test_a_parameter_of_words_has_the_type_of_these_words(learner, name, words):
    hint = get_type_hints(learner.load().__init__)[name]
    literal = next(one for one in (hint, *get_args(hint)) if get_origin(one) is Literal)
    assert sorted(get_args(literal)) == sorted(words)


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_every_parameter_has_a_type(learner):
    hints = get_type_hints(learner.load().__init__)
    assert set(learner.params) <= set(hints)
