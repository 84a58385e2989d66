"""The rule of what is printed: ranges of quantiles, round windows, names that are taken out."""

import math
import re

import numpy as np
import pytest

from certifit.data import privacy
from certifit.data.privacy import FEWEST, Mask, Rule


@pytest.mark.parametrize("n", [10, 11, 37, 1000])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 12345.678, 1e12])
def test_an_end_of_a_range_lies_among_the_values_about_its_quantile_and_is_none_of_them(n, scale):
    values = np.random.default_rng(n).normal(3.0, 1.0, n) * scale
    low, high = Rule().ends(values, values.min(), values.max())
    step = (values.max() - values.min()) / privacy.STEPS
    assert values.min() - step <= low < high <= values.max() + step
    assert low == pytest.approx(np.quantile(values, 0.05), abs=0.6 * scale)
    assert high == pytest.approx(np.quantile(values, 0.95), abs=0.6 * scale)
    assert not {low, high} & set(values.tolist())


def test_evenly_spaced_values_do_not_come_back_as_their_own_mean():
    values = 1_000_003 + 7_919.0 * np.arange(200)
    assert not set(Rule().ends(values, values.min(), values.max())) & set(values.tolist())


def test_few_values_have_no_range_and_shown_ones_their_own():
    values = np.array([4.25] * (2 * FEWEST - 1))
    assert Rule().ends(values, 1.0, 9.0) == (None, None)
    assert Rule(shows=True).ends(values, 1.0, 9.0) == (1.0, 9.0)
    assert Rule().ends(np.append(values, np.nan), 1.0, 9.0) == (None, None)
    assert Rule().ends(np.append(values, 4.25), 1.0, 9.0) == (4.25, 4.25)


@pytest.mark.parametrize("low, high", [(7919.12345, 9210.77), (-3e-8, 1e-7), (0.0, 1.0), (-5.5, -5.25), (1e300, 3e305)])
def test_a_window_holds_its_range_is_hardly_wider_and_round(low, high):
    below, above = Rule().window(low, high)
    width = high - low
    assert below <= low and high <= above
    assert above - below <= width * (1 + 2.1 / privacy.STEPS)
    if abs(high) < 1e290:
        step = 10.0 ** math.floor(math.log10(width / privacy.STEPS))
        assert all(abs(end / step - round(end / step)) < 1e-6 for end in (below, above))


def test_a_window_without_width_stays():
    assert Rule().window(2.0, 2.0) == (2.0, 2.0)
    assert Rule().window(-1.7e308, 1.7e308) == pytest.approx((-1.7e308, 1.7e308), rel=0.1)


def test_a_figure_of_one_row_has_three_digits():
    assert Rule().of_row(7919.12345) == 7920.0
    assert Rule(shows=True).of_row(7919.12345) == 7919.12345
    assert math.isinf(Rule().of_row(math.inf))


def test_the_longest_name_counts_and_what_is_printed_stays():
    mask = Mask()
    mask.hide({"city=a": "city=(not shown)", "class 3": "class 3 of 3 (rare)"}, ["city=ab"])
    assert mask("city=a + city=ab = city=abc") == "city=(not shown) + city=ab = city=abc"
    once = mask("class 3 is rare")
    assert once == "class 3 of 3 (rare) is rare" and mask(once) == once
    assert mask.deep({"city=a": ["city=a", 1, None]}) == {"city=a": ["city=(not shown)", 1, None]}


def test_a_mask_is_one_search_for_the_longest_of_all_names(rng):
    """The same as a regular expression of all of them, which takes long for the words of many texts."""
    for _ in range(300):
        words = ["".join(rng.choice(list("ab="), rng.integers(1, 5))) for _ in range(8)]
        secrets = {word: f"{word[:1]}*" for word in words[:4]}
        mask = Mask()
        mask.hide(secrets, words[4:])
        names = sorted({*words, *secrets.values()}, key=len, reverse=True)
        text = "".join(rng.choice(list("ab=*"), 30))
        parts = re.split(f"({'|'.join(map(re.escape, names))})", text)  # every second one is a name
        assert mask(text) == "".join(secrets.get(part, part) if i % 2 else part for i, part in enumerate(parts))
        mask.hide({"a": "(hidden)"})  # a mask that has been used learns more names
        assert mask("-a-") == "-(hidden)-"


def test_a_name_is_found_as_a_message_quotes_it():
    mask = Mask()
    mask.hide({"city=it's\n": "city=(not shown)"})
    quoted = repr("city=it's\n")
    assert mask(f"Column {quoted} is constant") == 'Column "city=(not shown)" is constant'


def test_messages_hide_cells_until_they_are_shown():
    assert privacy.cell("'x'") == "'x'" and privacy.cell(2.5) == "2.5" and privacy.rule().shows
    with privacy.hiding():
        privacy.conceal({"city=a": "city=(not shown)"})
        assert "'x'" not in privacy.cell("'x'") and "--show-values" in privacy.cell(2.5)
        assert privacy.masked("city=a") == "city=(not shown)" and not privacy.rule().shows
        privacy.show()
        assert privacy.cell("'x'") == "'x'" and privacy.masked("city=a") == "city=a"
    assert privacy.rule().shows
