"""Text for people: names made safe to show, and numbers with a sensible count of digits.

Names come from data files, so they are never trusted: what is hidden in them is spelt out (data/privacy.py). HTML
escaping is the template's work (autoescape) and svg.escape's.
"""

import math
from typing import Any

from certifit.data import privacy

Table = dict[str, Any]  # of the context: JSON types only
visible = privacy.visible

# What is in notes on: labels that are one class to a reader and several to a model; class weights; copies of rows.
SPELT_ALIKE = "Labels differ only by capitals or spaces"
CLASSES_WEIGHTED = "Class weights change the probabilities"
COPIES_SEEN = "rows are predicted by models that saw their copies"
BY_NOTICES = (SPELT_ALIKE, CLASSES_WEIGHTED, COPIES_SEEN)  # notes on the folds that a notice of its own says

LEAST_LOSS = 1e-15  # of a probability of 1 to the last digit
FAR = 10.0  # R squared so far below 0 has a few significant digits instead of decimals


def one_line(text: object) -> str:
    """A message as one visible line: line breaks become spaces, other hidden characters are spelt out."""
    return visible(" ".join(str(text).split()), 1000)


def count(number: float) -> str:
    """3000 -> '3,000'; a sum of weights keeps two decimals."""
    if not math.isfinite(number):
        return str(number)
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,.2f}"


def plural(number: float, noun: str, nouns: str | None = None) -> str:
    """'1 column', '3 columns'; `nouns` where an s does not do."""
    return f"{count(number)} {noun}" if number == 1 else f"{count(number)} {nouns or f'{noun}s'}"


def number(value: float | None, digits: int = 4) -> str:
    """`digits` significant digits; powers of ten only outside [1e-4, 1e7).

    >>> number(0.0123456), number(123456.0), number(1.5e-9), number(-2.0)
    ('0.01235', '123500', '1.5e-9', '-2')
    """
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e7:
        return _power(value, digits)
    rounded = float(f"{value:.{digits - 1}e}")
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    text = f"{rounded:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def factor(value: float | None) -> str:
    """What something is multiplied by, as `number` writes it; near 1 with two digits of its distance from 1.

    >>> factor(1.391), factor(1.0001283), factor(0.999993913), factor(1.0)
    ('1.391', '1.00013', '0.9999939', '1')
    """
    if value is None or not 0.99 < value < 1.01 or value == 1:
        return number(value)
    decimals = min(1 - math.floor(math.log10(abs(value - 1))), 16)
    return f"{value:.{decimals}f}".rstrip("0").rstrip(".")


def amount(value: float | None, digits: int = 4) -> str:
    """A number as `number` writes it, with commas between thousands from 10,000 on.

    >>> amount(90793.2), amount(1234.5), amount(1e9)
    ('90,790', '1234', '1e9')
    """
    shown = number(value, digits)
    return f"{int(shown):,}" if shown.lstrip("-").isdigit() and len(shown.lstrip("-")) > 4 else shown


def fixed(value: float | None, decimals: int) -> str:
    """A number with the decimals of its standard error, as in '1.03099' beside '0.00794'."""
    if value is None or not math.isfinite(value):
        return number(value)
    if decimals > 8 or abs(value) >= 1e7:
        return _power(value, 4)
    return f"{value:.{max(decimals, 0)}f}"


def decimals_for(error: float | None, value: float | None) -> int:
    """Decimals that show three significant digits of the error; four of the value when there is no error."""
    if error is not None and math.isfinite(error) and error > 0:
        return 2 - math.floor(math.log10(float(f"{error:.2e}")))
    if value is None or value == 0 or not math.isfinite(value):
        return 0
    return 3 - math.floor(math.log10(abs(value)))


def measured(value: float | None, error: float | None) -> tuple[str, str]:
    """A value and its standard error, both to the second digit of the error.

    >>> measured(32481.3, 1512.7), measured(0.10349, 0.00612), measured(7.25, None)
    (('32,500', '1,500'), ('0.1035', '0.0061'), ('7.25', '–'))
    """
    if value is None or error is None or not (math.isfinite(value) and math.isfinite(error) and error > 0):
        return number(value), number(error)
    decimals = 1 - math.floor(math.log10(float(f"{error:.1e}")))
    if decimals > 8 or abs(value) >= 1e9:
        return number(value), number(error, 2)
    shown = (f"{round(one, decimals):,.{max(decimals, 0)}f}" for one in (value, error))
    return next(shown), next(shown)


def small_loss(value: float) -> str:
    """A log loss near 0; one below the rounding of a probability near 1 is known no better than that.

    >>> small_loss(3.14e-7), small_loss(0.0)
    ('3.1e-7', 'below 1e-15')
    """
    return number(value, 2) if value >= LEAST_LOSS else f"below {LEAST_LOSS:.0e}"


def power(value: float | None) -> str:
    """One significant digit: 3e-29; for bounds, so rounded up, never down."""
    if value is None or value == 0 or not math.isfinite(value):
        return number(value)
    exponent = math.floor(math.log10(value))
    digit = math.ceil(value / 10.0**exponent - 1e-9) if exponent > -300 else 10
    if digit >= 10:
        digit, exponent = 1, exponent + 1
    return f"{digit}e{exponent}" if not -3 <= exponent <= 3 else number(digit * 10.0**exponent)


def bound(value: float) -> str:
    """A proven relative bound as sentences print it: 1e-15 and below are all called 1e-15; report.json has them."""
    return power(max(value, 1e-15))


def p_value(p: float | None) -> str:
    """Two significant digits down to 0.0001, then '< 0.0001'."""
    if p is None or math.isnan(p):
        return "–"
    if p < 1e-4:
        return "< 0.0001"
    return f"{p:.3f}" if p >= 0.01 else f"{p:.4f}"


def share(value: float | None, whole: float = 1.0) -> str:
    """R squared: four decimals, more when it is nearly 1 so that 1 - R2 keeps two digits, fewer far below 0.

    >>> share(0.8841), share(0.999978), share(-1.2363e18)
    ('0.8841', '0.999978', '-1.236e18')
    """
    if value is None or not math.isfinite(value):
        return "–"
    if value < -FAR:
        return amount(value)
    rest = whole - value
    if rest <= 1e-14 * whole:
        return "1"
    decimals = 4 if rest > 5e-4 else min(15, 1 - math.floor(math.log10(rest)))
    return f"{value:z.{decimals}f}"  # z: no minus before zeros


def hundredths(value: float, decimals: int = 1) -> str:
    """A share as the number before a "%"; far below 0 with two significant digits.

    >>> hundredths(0.8841), hundredths(-3.1, 0), hundredths(-5.64e18)
    ('88.4', '-310', '-5.6e20')
    """
    return amount(100 * value, 2) if value < -FAR else f"{100 * value:z.{decimals}f}"


def less_than(metric: dict[str, Any]) -> str:
    """A mean error beside that of a constant: '12.3 % less than that of the 0.9 quantile of y'."""
    return f"{percent(metric['explained'])} less than that of the {metric['baseline']} alone"


def percent(value: float | None) -> str:
    """A share: '0.3 %', '99.97 %', '100 %' only when it is all."""
    if value is None or not math.isfinite(value):
        return "–"
    shown = 100 * value
    if 0 < shown < 0.1:
        return "< 0.1 %"
    if 99.9 < shown < 100:
        return f"{math.floor(shown * 100) / 100:.2f} %" if shown < 99.99 else "> 99.99 %"
    return f"{shown:.1f} %" if 0 < shown < 100 else f"{shown:.0f} %"


def _power(value: float, digits: int) -> str:
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}e{int(exponent)}"


def joined(names: list[str], limit: int = 6) -> str:
    """'a, b and c'; beyond `limit` names the rest is counted."""
    shown = [visible(name, 40) for name in names[:limit]]
    if len(names) > limit:
        return ", ".join(shown) + f" and {count(len(names) - limit)} more"
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1] if shown else ""
