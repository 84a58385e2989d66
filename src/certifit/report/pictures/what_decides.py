"""What decides: bars of log-odds for and against the positive class, or the bell curves of every class."""

from collections.abc import Callable
from typing import Any

from certifit.report import svg, text
from certifit.report.what_decides import spoken

MOST = 16
ROW = 21
NAME = 24


def draw_deciding(context: dict[str, Any]) -> str:
    """Empty text where there is nothing to compare, or more classes than a picture holds."""
    deciding, classes = context["deciding"], context["classes"]
    if deciding is None or classes is None:
        return ""
    drawn = WAYS[deciding["what"]](deciding, classes["positive"])
    if drawn is None:
        return ""
    title, description, body, height = drawn
    return svg.document("deciding", title, description, body, height=height)


Drawn = tuple[str, str, list[str], float]


def _words(deciding: dict[str, Any], positive: int | None) -> Drawn | None:
    """Of two classes: the words that speak most for each, by their log-odds."""
    if positive is None:
        return None
    rows = spoken(deciding, positive, MOST // 2) + spoken(deciding, 1 - positive, MOST // 2)
    label = text.visible(deciding["labels"][positive], 20)
    return _bars([(row["name"], row["log_odds"][positive]) for row in rows], f"log-odds of {label}, each time it comes")


def _odds(deciding: dict[str, Any], positive: int | None) -> Drawn | None:
    if positive is None:
        return _bells(deciding, positive)
    rows = deciding["rows"][:MOST]
    label = text.visible(deciding["labels"][positive], 20)
    values = [(row["name"], row["evidence"][positive]) for row in rows]
    return _bars(values, f"log-odds of {label}, one standard deviation")


def _bars(values: list[tuple[str, float | None]], label: str) -> Drawn | None:
    known = sorted([(name, value) for name, value in values if value is not None], key=lambda one: -one[1])
    if len(known) < 2:
        return None
    ends = [value for _, value in known]
    frame = _frame([name for name, _ in known], (min(0.0, *ends), max(0.0, *ends)))
    body = [svg.x_axis(frame, label), frame.line([(0.0, frame.y[0]), (0.0, frame.y[1])], "axis")]
    for k, (name, value) in enumerate(known):
        y, zero, x = frame.py(k), frame.px(0.0), frame.px(value)
        kind = "bar-for" if value > 0 else "bar-against"
        tip = svg.escape(f"{text.visible(name)}: {text.number(value, 3)}")
        body.append(
            f'<g><title>{tip}</title>{_name(frame, k, name)}<rect class="{kind}" x="{min(zero, x):.1f}" '
            f'y="{y - 6:.1f}" width="{max(abs(x - zero), 0.5):.1f}" height="12"/></g>'
        )
    words = "; ".join(f"{text.visible(name, 40)} {text.number(value, 3)}" for name, value in known)
    return f"What decides: {label}", words, body, frame.bottom + 46


def _bells(deciding: dict[str, Any], positive: int | None) -> Drawn | None:
    """Mean and spread of each class, in units of the spread over all rows."""
    labels, rows = deciding["labels"], deciding["rows"][:MOST]
    if not 2 <= len(labels) <= svg.N_COLOURS or not rows:
        return None
    scaled = [(row["name"], _scaled(row)) for row in rows]
    ends = [mean + sign * sd for _, bell in scaled for _, mean, sd in bell for sign in (-1, 1)]
    if not ends:
        return None
    frame = _frame([name for name, _ in scaled], (min(ends), max(ends)), top=28.0)
    body = [svg.x_axis(frame, "standard deviations from the mean")]
    for k, (name, bell) in enumerate(scaled):
        body.append(_name(frame, k, name))
        for c, mean, sd in bell:
            y = frame.py(k) + (c - (len(bell) - 1) / 2) * min(5.0, 14 / len(bell))
            low, high, x = frame.px(mean - sd), frame.px(mean + sd), frame.px(mean)
            tip = svg.escape(f"{text.visible(name)}, {text.visible(labels[c], 40)}: {text.number(mean, 2)}")
            body.append(
                f'<g><title>{tip}</title><path class="line-many c{c + 1}" d="M{low:.1f} {y:.1f}H{high:.1f}"/>'
                f'<path class="dot point c{c + 1}" stroke-width="6.5" d="M{x:.1f} {y:.1f}h0"/></g>'
            )
    body.append(svg.legend(frame, [(f"line-many c{c + 1}", text.visible(one, 12)) for c, one in enumerate(labels)]))
    words = "Mean and standard deviation of each class: " + "; ".join(
        f"{text.visible(name, 40)} " + ", ".join(text.number(mean, 2) for _, mean, _ in bell) for name, bell in scaled
    )
    return "Means and spreads of the classes", words, body, frame.bottom + 46


def _scaled(row: dict[str, Any]) -> list[tuple[int, float, float]]:
    """(place, mean, sd) of the classes that have them, about the plain mean of their means, over the overall spread."""
    numbers = enumerate(zip(row["mean"], row["sd"], strict=True))
    known = [(place, mean, sd) for place, (mean, sd) in numbers if mean is not None and sd is not None]
    centre = sum(mean for _, mean, _ in known) / max(len(known), 1)
    total = sum((mean - centre) ** 2 + sd * sd for _, mean, sd in known) / max(len(known), 1)
    size = total**0.5 or 1.0
    return [(place, (mean - centre) / size, sd / size) for place, mean, sd in known]


WAYS: dict[str, Callable[[dict[str, Any], int | None], Drawn | None]] = {
    "words": _words,
    "odds": _odds,
    "spreads": _bells,
}


def _frame(names: list[str], x: svg.Range, top: float = 10.0) -> svg.Frame:
    longest = max(len(text.visible(name, NAME)) for name in names)
    bottom = top + 4 + ROW * len(names)
    return svg.Frame(
        svg.widened(x, 0.04), (len(names) - 0.5, -0.5), left=14 + svg.CHARACTER * longest, top=top, bottom=bottom
    )


def _name(frame: svg.Frame, k: int, name: str) -> str:
    return (
        f'<text class="name" x="{frame.left - 8:.1f}" y="{frame.py(k) + 4:.1f}" text-anchor="end">'
        f"{svg.escape(name, NAME)}</text>"
    )
