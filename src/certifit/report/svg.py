"""Small pictures as inline SVG text: a frame with axes, and marks in data units.

Colours are CSS classes (ink, line, d1..d6, band...), so one picture serves light, dark and print.
Coordinates carry one decimal of a pixel. Every text goes through `escape`.
"""

import html
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Self

from certifit.evaluation.pictures import Band
from certifit.report.text import visible

WIDTH, HEIGHT = 480, 330
MADE_BY = "Made by certifit"
AIR = 8  # round a picture that is a file of its own
# Width of a digit at the 12 px of an axis label, wide enough for any usual sans-serif font.
CHARACTER = 7.2
KEY_ROW = 18  # height of a row of a legend
N_SHADES = 6
MOST_DOTS = 2000  # rows that are drawn as dots
# Colours of lines side by side: classes c1..c6.
N_COLOURS = 6

Point = tuple[float, float]
Range = tuple[float, float]


def escape(text: object, limit: int | None = None) -> str:
    """Text safe between tags and in quoted attributes."""
    return html.escape(visible(text, limit), quote=True)


def document(name: str, title: str, description: str, body: Iterable[str], height: float = HEIGHT) -> str:
    """A whole picture. `name` makes its ids unique on the page."""
    return (
        f'<svg class="picture" viewBox="0 0 {WIDTH} {_c(height)}" role="img" '
        f'aria-labelledby="{name}-title {name}-desc" xmlns="http://www.w3.org/2000/svg">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(description)}</desc>'
        f"{''.join(body)}</svg>"
    )


def standalone(picture: str, style: str) -> str:
    """A picture as a file of its own: its style inside, its paper behind it, at its natural size."""
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', picture)
    assert size is not None
    width, height = (_c(float(side) + 2 * AIR) for side in size.groups())
    box = f'viewBox="{-AIR} {-AIR} {width} {height}"'
    picture = picture.replace(size[0], f'width="{width}" height="{height}" {box}', 1)
    after = picture.index("</desc>") + len("</desc>")
    paper = f'<style>{style}</style><rect class="paper" x="{-AIR}" y="{-AIR}" width="{width}" height="{height}"/>'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<!-- {MADE_BY} -->\n{picture[:after]}{paper}{picture[after:]}\n'


@dataclass(frozen=True)
class Frame:
    """Plot area: maps data units to pixels and draws the axes."""

    x: Range
    y: Range
    left: float
    right: float = WIDTH - 12
    top: float = 28
    bottom: float = HEIGHT - 48

    @classmethod
    def around(cls, x: Range, y: Range, margin: float = 0.02) -> Self:
        """A frame with a little air round the data, and room for the labels of the y axis."""
        frame = cls(widened(x, margin), widened(y, margin), left=0.0)
        widest = max((len(label) for _, label in frame.y_ticks()), default=1)
        return replace(frame, left=34 + CHARACTER * widest)

    def px(self, x: float) -> float:
        """Pixels from the left."""
        return self.left + (self.right - self.left) * _share(x, self.x)

    def py(self, y: float) -> float:
        """Pixels from the top."""
        return self.bottom - (self.bottom - self.top) * _share(y, self.y)

    def axes(self, x_label: str, y_label: str) -> str:
        """Grid lines, tick labels and the names of both axes; long names are cut in the middle."""
        parts = _x_grid(self)
        for value, label in self.y_ticks():
            height, baseline = _c(self.py(value)), _c(self.py(value) + 4)
            parts.append(f'<path class="grid" d="M{_c(self.left)} {height}H{_c(self.right)}"/>')
            parts.append(f'<text class="tick" x="{_c(self.left - 6)}" y="{baseline}" text-anchor="end">{label}</text>')
        middle, level = (self.left + self.right) / 2, (self.top + self.bottom) / 2
        parts.append(f'<path class="axis" d="M{_c(self.left)} {_c(self.bottom)}H{_c(self.right)}"/>')
        parts.append(
            f'<text class="label" x="{_c(middle)}" y="{_c(self.bottom + 38)}" text-anchor="middle">'
            f"{escape(x_label, 48)}</text>"
            f'<text class="label" transform="translate(12 {_c(level)}) rotate(-90)" text-anchor="middle">'
            f"{escape(y_label, 36)}</text>"
        )
        return "".join(parts)

    def x_ticks(self) -> list[tuple[float, str]]:
        """As many as fit side by side."""
        room = self.right - self.left
        for most in (7, 5, 4, 3):
            labelled = ticks(*self.x, most)
            if sum(CHARACTER * len(label) + 14 for _, label in labelled) <= room:
                break
        return labelled

    def y_ticks(self) -> list[tuple[float, str]]:
        """Round values."""
        return ticks(*self.y)

    def line(self, points: Sequence[Point], kind: str) -> str:
        """A line through the points, cut to the frame by its clip."""
        return f'<path class="{kind}" d="{self._path(points)}"/>'

    def agreement(self, groups: Sequence[Mapping[str, float]], ends: Range, tips: Sequence[str]) -> list[str]:
        """Observed against predicted values of groups round the line of equality; an interval where there is a tip."""
        points = [(group["predicted"], group["observed"]) for group in groups]
        marks = [self.line([(end, end) for end in ends], "zero")]
        for group, tip in zip(groups, tips, strict=True):
            if tip:
                x, low, high = self.px(group["predicted"]), self.py(group["low"]), self.py(group["high"])
                whisker = f'<path class="whisker" d="M{x:.1f} {low:.1f}V{high:.1f}"/>'
                marks.append(f"<g><title>{escape(tip)}</title>{whisker}</g>")
        return [*marks, self.line(points, "join"), self.dots(points, "s6", 7)]

    def area(self, lower: Sequence[Point], upper: Sequence[Point], kind: str) -> str:
        """The area between two lines."""
        return f'<path class="{kind}" d="{self._path([*lower, *reversed(upper)])}Z"/>'

    def dots(self, points: Iterable[Point], kind: str, size: float = 4) -> str:
        """Round dots: a line of length zero with round ends."""
        marks = "".join(f"M{_c(self.px(x))} {_c(self.py(y))}h0" for x, y in points)
        return f'<path class="dot {kind}" stroke-width="{_c(size)}" d="{marks}"/>' if marks else ""

    def _path(self, points: Sequence[Point]) -> str:
        return "".join(f"{'L' if i else 'M'}{_c(self.px(x))} {_c(self.py(y))}" for i, (x, y) in enumerate(points))

    def clipped(self, name: str, parts: Iterable[str]) -> str:
        """Marks that may leave the frame."""
        box = (
            f'x="{_c(self.left)}" y="{_c(self.top)}" width="{_c(self.right - self.left)}" '
            f'height="{_c(self.bottom - self.top)}"'
        )
        return (
            f'<clipPath id="{name}-clip"><rect {box}/></clipPath><g clip-path="url(#{name}-clip)">{"".join(parts)}</g>'
        )


@dataclass(frozen=True)
class LogFrame(Frame):
    """A frame whose x are logarithms to base ten; ticks stand at powers of ten, or at 1, 2, 5 of few of them."""

    def x_ticks(self) -> list[tuple[float, str]]:
        """As many as fit side by side."""
        return log_ticks(*self.x, room=self.right - self.left)


@dataclass(frozen=True)
class StepFrame(Frame):
    """A frame whose x are places 0, 1, ... with labels of their own."""

    labels: tuple[tuple[float, str], ...] = ()

    def x_ticks(self) -> list[tuple[float, str]]:
        """All of them, or every second one and so on, as they fit."""
        room = self.right - self.left
        for step in range(1, len(self.labels) + 1):
            labelled = list(self.labels[::step])
            if sum(CHARACTER * len(label) + 14 for _, label in labelled) <= room:
                return labelled
        return []


@dataclass(frozen=True)
class PowerFrame(Frame):
    """A frame whose y are logarithms to base ten; ticks stand at powers of ten."""

    def y_ticks(self) -> list[tuple[float, str]]:
        """As many as fit above each other."""
        return log_ticks(*self.y, room=260, most=7)


def log_ticks(low: float, high: float, room: float, most: int = 99) -> list[tuple[float, str]]:
    """Powers of ten between two logarithms; 1, 2 and 5 times them where there are fewer than three."""
    low, high = min(low, high), max(low, high)
    first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
    if last - first < 2:
        places = [(k + math.log10(m), _log_label(m, k)) for k in range(first - 1, last + 1) for m in (1, 2, 5)]
        places = [(at, label) for at, label in places if low - 1e-9 <= at <= high + 1e-9]
        if len(places) > 1 or high > 300:
            return places
        return [(log10(value), label) for value, label in ticks(10**low, 10**high, 5)]
    for step in (1, 2, 3, 4, 5, 10, 20, 50, 100):
        places = [(float(k), _log_label(1, k)) for k in range(first, last + 1) if k % step == 0]
        if len(places) <= most and sum(CHARACTER * len(label) + 14 for _, label in places) <= room:
            break
    return places


def log10(value: float) -> float:
    """The place of a positive number on the axis of a LogFrame."""
    return math.log10(value)


def _log_label(m: int, k: int) -> str:
    """m 10^k: plain between 0.001 and 1,000."""
    return f"{m * 10.0**k:,.{max(-k, 0)}f}" if -3 <= k <= 3 else f"{m}e{k}".replace("-", "−")


def marked(frame: Frame, x: float, y: float, radius: float = 5) -> str:
    """A ring that marks a point."""
    return f'<circle class="mark" cx="{_c(frame.px(x))}" cy="{_c(frame.py(y))}" r="{_c(radius)}"/>'


def edges(band: Band) -> tuple[list[Point], list[Point]]:
    """The lower and the upper edge of a band."""
    x = band.x.tolist()
    return list(zip(x, band.low.tolist(), strict=True)), list(zip(x, band.high.tolist(), strict=True))


def x_axis(frame: Frame, label: str) -> str:
    """Grid lines, tick labels and the name of the x axis alone; a long name is moved to stay within the picture."""
    parts, label = _x_grid(frame), visible(label, 60)
    half = CHARACTER * len(label) / 2
    middle = max(half, min((frame.left + frame.right) / 2, WIDTH - half))
    parts.append(
        f'<text class="label" x="{_c(middle)}" y="{_c(frame.bottom + 38)}" text-anchor="middle">{escape(label)}</text>'
    )
    return "".join(parts)


def _x_grid(frame: Frame) -> list[str]:
    """Grid lines and tick labels of the x axis; the last label stays within the picture."""
    parts = []
    for value, label in frame.x_ticks():
        x = frame.px(value)
        middle = min(x, WIDTH - CHARACTER * len(label) / 2)
        parts.append(f'<path class="grid" d="M{_c(x)} {_c(frame.top)}V{_c(frame.bottom)}"/>')
        parts.append(
            f'<text class="tick" x="{_c(middle)}" y="{_c(frame.bottom + 16)}" text-anchor="middle">{label}</text>'
        )
    return parts


def density(frame: Frame, grid: dict[str, Any]) -> str:
    """Counts on a grid: one path per shade; few rows as dots that grow with their number, many as cells."""
    n_columns, n_rows = grid["shape"]
    cells: list[tuple[int, int, float]] = grid["cells"]
    (x0, x1), (y0, y1) = grid["x"], grid["y"]
    most = max((mass for _, _, mass in cells), default=1.0)
    shades: dict[int, list[Point]] = {}
    for i, j, mass in cells:
        shade = 1 + int((N_SHADES - 1e-9) * math.log1p(mass) / math.log1p(most))
        x, y = x0 + (x1 - x0) * ((i + 0.5) / n_columns), y0 + (y1 - y0) * ((j + 0.5) / n_rows)
        shades.setdefault(shade, []).append((x, y))
    if sum(mass for _, _, mass in cells) <= MOST_DOTS:
        sizes = {shade: 4.2 + 4.0 * shade / N_SHADES for shade in shades}
        return "".join(frame.dots(points, f"s{shade}", sizes[shade]) for shade, points in sorted(shades.items()))
    width = (frame.px(x1) - frame.px(x0)) / n_columns
    height = (frame.py(y0) - frame.py(y1)) / n_rows
    return "".join(_cells(frame, points, shade, width, height) for shade, points in sorted(shades.items()))


def _cells(frame: Frame, points: list[Point], shade: int, width: float, height: float) -> str:
    # Each cell grows by 0.2 px, so that no hairline shows between neighbours.
    size = f"h{_c(width + 0.2)}v{_c(height + 0.2)}h{_c(-width - 0.2)}z"
    corners = (f"M{_c(frame.px(x) - width / 2)} {_c(frame.py(y) - height / 2)}{size}" for x, y in points)
    return f'<path class="d{shade}" d="{"".join(corners)}"/>'


def legend(frame: Frame, entries: Sequence[tuple[str, str]]) -> str:
    """(class, words) above the frame, in `legend_rows` rows. A class that starts with 'band' is a patch."""
    parts, x, y = [], frame.left, 13.0
    for kind, words in entries:
        if x > frame.left and x + _key_width(words) > WIDTH:
            x, y = frame.left, y + KEY_ROW
        if kind.startswith("band"):
            parts.append(f'<rect class="{kind}" x="{_c(x)}" y="{_c(y - 5)}" width="16" height="10"/>')
        elif kind.startswith("dot"):
            parts.append(f'<path class="{kind}" stroke-width="5" d="M{_c(x + 8)} {_c(y)}h0"/>')
        else:
            parts.append(f'<path class="{kind}" d="M{_c(x)} {_c(y)}h16"/>')
        parts.append(f'<text class="key" x="{_c(x + 21)}" y="{_c(y + 4)}">{escape(words)}</text>')
        x += _key_width(words) + 10
    return "".join(parts)


def legend_rows(left: float, entries: Sequence[tuple[str, str]]) -> int:
    """Rows that a legend takes which begins `left` pixels from the edge."""
    rows, x = 1, left
    for _, words in entries:
        if x > left and x + _key_width(words) > WIDTH:
            rows, x = rows + 1, left
        x += _key_width(words) + 10
    return rows


def _key_width(words: str) -> float:
    return 21 + CHARACTER * len(words)


def ticks(low: float, high: float, most: int = 7) -> list[tuple[float, str]]:
    """At most `most` round values in [low, high], at steps of 1, 2 or 5 times a power of ten, with labels.

    >>> ticks(0, 1)
    [(0.0, '0'), (0.2, '0.2'), (0.4, '0.4'), (0.6, '0.6'), (0.8, '0.8'), (1.0, '1')]
    """
    raw = high / most - low / most
    if not (raw > max(1e-12 * max(abs(low), abs(high)), 1e-300) and math.isfinite(raw)):
        return []
    exponent = math.floor(math.log10(raw))
    for step in (m * 10.0**e for e in (exponent, exponent + 1) for m in (1, 2, 5)):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            break
    return [(_round(k * step, exponent), tick_label(_round(k * step, exponent), step)) for k in range(first, last + 1)]


def tick_label(value: float, step: float) -> str:
    """Decimals as the step needs; powers of ten for very large or small numbers. A real minus."""
    if value == 0:
        return "0"
    digits = math.floor(math.log10(abs(step)) + 1e-9)
    if abs(value) >= 1e6 or step < 1e-5:
        precision = max(0, math.floor(math.log10(abs(value)) + 1e-9) - digits)
        mantissa, exponent = f"{value:.{precision}e}".split("e")
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        label = f"{mantissa}e{int(exponent)}"
    else:
        label = f"{value:,.{max(0, -digits)}f}"
        label = label.rstrip("0").rstrip(".") if "." in label else label
    return label.replace("-", "−")


def _round(value: float, exponent: int) -> float:
    return round(value, 2 - exponent) if -300 < exponent < 300 else value


def _share(value: float, window: Range) -> float:
    """(value - low) / (high - low), with halves so that huge ranges stay finite."""
    low, high = window
    return (value / 2 - low / 2) / (high / 2 - low / 2)


def widened(window: Range, margin: float) -> Range:
    """A range with a share of it added at both ends; a single value gets a range round it."""
    low, high = window
    air = margin * high - margin * low if high > low else abs(low) * 0.1 or 1.0
    return low - air, high + air


def _c(value: float) -> str:
    """A coordinate: one decimal, no trailing zero; cut far outside the picture, so that it stays a number."""
    value = max(-9999.0, min(9999.0, value))
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


# The style sheets: variables on the page, plain colours in a picture of its own, which other programs read too.

TEMPLATES = Path(__file__).with_name("templates")
DARK = "@media screen and (prefers-color-scheme: dark)"


def _sheet(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


@cache
def page_style() -> str:
    """Colours, pictures, page."""
    return _sheet("colours.css") + _sheet("picture.css") + _sheet("report.css")


@cache
def picture_style() -> str:
    """The style of one picture, in light colours and, where the reader asks for them, dark ones."""
    light, dark = (dict(re.findall(r"(--[\w-]+): (#\w+)", part)) for part in _sheet("colours.css").split(DARK))
    rules = _sheet("picture.css")
    return f"\n{_coloured(rules, light)}{DARK} {{\n{_coloured(rules, light | dark)}}}\n"


def _coloured(rules: str, colours: dict[str, str]) -> str:
    return re.sub(r"var\((--[\w-]+)\)", lambda variable: colours[variable[1]], rules)
