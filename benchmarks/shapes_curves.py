"""What `certifit fit` costs against rows, columns and classes, drawn: CPU seconds, report and certificate included.

    python -m benchmarks.shapes --curves docs/pictures/shapes.svg [--out FILE.jsonl]
    python -m benchmarks.shapes_curves FILE.jsonl docs/pictures/shapes.svg       # drawn again from lines

Every point is a process of its own. A model that would be slow is not compared: the drawing says where. The steepest
step of a curve is told as a power of the size: 1 is proportional, a cliff is far above.
"""

import itertools
import json
import math
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .shapes import Cell, classes, command_line, compared, quantity, written

OPTIONS = ("--task", "classes")


@dataclass(frozen=True)
class Curve:
    """Tables that differ in one number. write: makes the table of a size."""

    what: str
    title: str
    sizes: tuple[int, ...]
    write: Callable[[int], Callable[[Path, Path], Path]]
    options: tuple[str, ...] = ()


CURVES = (
    Curve(
        "rows",
        "20 numbers, a quantity",
        (50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000),
        lambda size: quantity(size, 20),
    ),
    Curve(
        "columns",
        "200 rows, a quantity",
        (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000),
        lambda size: quantity(200, size),
    ),
    Curve(
        "columns",
        "80 rows, 4 classes",
        (5, 10, 20, 50, 100, 200, 400, 1000, 2300, 5000),
        lambda size: classes(80, size, 4),
        OPTIONS,
    ),
    Curve(
        "classes",
        "1,000 rows of 20 numbers",
        (2, 3, 4, 6, 8, 12, 16, 24),
        lambda size: classes(1000, 20, size),
        OPTIONS,
    ),
)


@dataclass(frozen=True)
class Point:
    """CPU seconds and megabytes of one size, and the models that were compared."""

    size: int
    cpu: float
    megabytes: float
    models: list[str]


def measured() -> Iterator[tuple[str, Point]]:
    """All curves, point by point, by their titles."""
    for curve in CURVES:
        for size in curve.sizes:
            with tempfile.TemporaryDirectory() as folder:
                path = written(curve.write(size), Path(folder), Path())
                cell: Cell = command_line(f"{curve.title}, {size} {curve.what}", path, curve.options)
                if cell.code not in (0, 1):
                    raise SystemExit(f"{cell.shape}: certifit ended with code {cell.code}.")
                yield _name(curve), Point(size, cell.cpu, cell.megabytes, compared(path))


def steepest(points: list[Point]) -> tuple[float, int]:
    """The largest step of the cost as a power of the size, and where it ends."""
    steps = [(math.log(b.cpu / a.cpu) / math.log(b.size / a.size), b.size) for a, b in itertools.pairwise(points)]
    return max(steps)


def left_out(points: list[Point]) -> list[tuple[float, list[str]]]:
    """Between which sizes models stop being compared. Models that the race stopped have their names in capitals."""
    out = []
    for before, after in itertools.pairwise(points):
        gone = sorted({model.lower() for model in before.models} - {model.lower() for model in after.models})
        if gone:
            out.append((math.sqrt(before.size * after.size), gone))
    return out


def draw(by_curve: dict[str, list[Point]], path: Path) -> None:
    """One panel per curve, on logarithmic axes; models that are left out from a size on are numbered."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter, NullLocator, StrMethodFormatter

    style = {"svg.fonttype": "none", "svg.hashsalt": "certifit", "font.family": "sans-serif", "font.size": 8}
    with plt.rc_context(style):
        figure, all_axes = plt.subplots(2, 2, figsize=(7.6, 7.0), sharey=True, layout="constrained")
        for axes, (name, points) in zip(all_axes.flat, by_curve.items(), strict=False):
            sizes, costs = [point.size for point in points], [point.cpu for point in points]
            axes.plot(sizes, costs, "o-", color="#2a6f97", markersize=3, linewidth=1.2)
            title, what = name.rsplit(": ", 1)
            axes.set(xscale="log", yscale="log", title=title, ylim=(1, max(100.0, *costs)))
            key = []
            for place, gone in left_out(points):
                key.append(textwrap.fill(f"{len(key) + 1}: from here on without {', '.join(gone)}", 48))
                axes.axvline(place, color="#999", linewidth=0.6, linestyle=":")
                axes.text(place, 1.1, f"{len(key)} ", ha="right", va="bottom", color="#555")
            axes.set_xlabel("\n".join([what, *key]))
            if max(sizes) < 100:  # less than a power of ten or two: every size is named
                axes.set_xticks(sizes)
                axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.grid(axis="y", linewidth=0.3)
            axes.spines[["top", "right"]].set_visible(False)
        for axes in all_axes[:, 0]:
            axes.set_ylabel("CPU seconds of certifit fit")
            axes.set_yticks([1, 2, 5, 10, 20, 50, 100], ["1", "2", "5", "10", "20", "50", "100"])
            axes.minorticks_off()
        figure.savefig(path, metadata={"Date": None})


def run(svg: Path, out: Path | None) -> None:
    """Measure, print, keep and draw."""
    by_curve: dict[str, list[Point]] = {}
    for name, point in measured():
        by_curve.setdefault(name, []).append(point)
        print(
            f"{name} {point.size:>9,}  CPU {point.cpu:8.2f} s  {point.megabytes:6.0f} MB  {len(point.models)} models",
            flush=True,
        )
        if out:
            with out.open("a") as file:
                file.write(json.dumps({"curve": name, **vars(point)}) + "\n")
    _finish(by_curve, svg)


def _finish(by_curve: dict[str, list[Point]], svg: Path) -> None:
    for name, points in by_curve.items():
        power, size = steepest(points)
        print(f"{name}: the steepest step, to {size:,}, is the power {power:.2f} of the size.")
    draw(by_curve, svg)


def _name(curve: Curve) -> str:
    return f"{curve.title}: {curve.what}"


def main(lines: str, svg: str) -> None:
    by_curve: dict[str, list[Point]] = {}
    for line in Path(lines).read_text().splitlines():
        facts: dict[str, Any] = json.loads(line)
        by_curve.setdefault(facts.pop("curve"), []).append(Point(**facts))
    _finish(by_curve, Path(svg))


if __name__ == "__main__":
    main(*sys.argv[1:])
