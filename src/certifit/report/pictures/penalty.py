"""Coefficients along the strength of the penalty; above them, how many are not zero."""

from typing import Any

from certifit.report import svg, text

# Ends of lines nearer than this, in pixels, have their names moved apart.
APART = 13
NAME = 18


def draw(context: dict[str, Any]) -> str:
    """Lines of coefficient times spread of its column, alpha on a log axis; empty text for a model without a path."""
    path = context["path"]
    if path is None:
        return ""
    places = [k for k, alpha in enumerate(path["alphas"]) if alpha > 0]
    x = [svg.log10(path["alphas"][k]) for k in places]
    lines = [(line, [line["effects"][k] for k in places]) for line in path["lines"]]
    if len(x) < 2 or not lines or max(x) <= min(x):
        return ""
    values = [value for _, effects in lines for value in effects]
    frame = _frame((min(x), max(x)), (min(0.0, *values), max(0.0, *values)), lines)
    marks = [
        frame.line(list(zip(x, effects, strict=True)), f"line-many {_colour(k)}")
        for k, (_, effects) in enumerate(lines)
    ]
    marks.append(frame.line([(frame.x[0], 0.0), (frame.x[1], 0.0)], "zero"))
    at = svg.log10(path["chosen"]) if path["chosen"] > 0 else min(x)
    if path["chosen"] > 0:
        marks.append(frame.line([(at, frame.y[0]), (at, frame.y[1])], "line-chosen"))
    body = [
        frame.axes("penalty alpha", f"{text.visible(context['model']['target'], 13)} per standard deviation"),
        frame.clipped("penalty", marks),
        _counts(frame, x, [path["n_nonzero"][k] for k in places], at),
        _names(frame, lines),
    ]
    description = (
        f"Coefficient times standard deviation of its column against alpha, for the {len(lines)} columns that move the "
        f"prediction most: {text.joined([line['name'] for line in path['lines']], 12)}. "
        f"Chosen: alpha {text.number(path['chosen'], 3)}."
    )
    return svg.document("penalty", "Coefficients against the penalty", description, body)


def _frame(x: svg.Range, y: svg.Range, lines: list[Any]) -> svg.Frame:
    """Room on the right for the names; small alphas, where all columns are in, stand there."""
    widest = max(len(text.visible(line["name"], NAME)) for line, _ in lines)
    around = svg.LogFrame.around(x, y)
    return svg.LogFrame(around.x[::-1], around.y, around.left, svg.WIDTH - 10 - svg.CHARACTER * widest, around.top + 14)


def _counts(frame: svg.Frame, x: list[float], n_nonzero: list[int], chosen: float) -> str:
    """The number of coefficients that are not zero, above the frame; that of the chosen alpha in any case."""
    parts = [f'<text class="tick" x="{frame.left:.1f}" y="12">coefficients that are not zero</text>']
    room = (frame.right - frame.left) / 6
    own = min(range(len(x)), key=lambda k: abs(x[k] - chosen))
    taken = [frame.px(x[own])]
    for k, at in enumerate(x):
        place = frame.px(at)
        if k == own or all(abs(place - other) >= room for other in taken):
            taken.append(place)
            look = f'class="{"name strong" if k == own else "tick"}" text-anchor="middle"'
            parts.append(f'<text {look} x="{place:.1f}" y="{frame.top - 6:.1f}">{n_nonzero[k]}</text>')
    return "".join(parts)


def _names(frame: svg.Frame, lines: list[Any]) -> str:
    """Names at the ends of the lines, moved apart where they would overlap."""
    ends = sorted((frame.py(effects[-1]), k) for k, (_, effects) in enumerate(lines))
    low, high = frame.top + 4, frame.bottom
    placed: list[float] = []
    for y, _ in ends:
        placed.append(max(y, low, placed[-1] + APART if placed else low))
    for k in range(len(placed) - 1, -1, -1):  # what went below the frame is pushed up again
        limit = high if k == len(placed) - 1 else placed[k + 1] - APART
        placed[k] = min(placed[k], limit)
    return "".join(
        f'<text class="key {_colour(k)}" x="{frame.right + 6:.1f}" y="{y + 4:.1f}">'
        f"{svg.escape(lines[k][0]['name'], NAME)}</text>"
        for y, (_, k) in zip(placed, ends, strict=True)
    )


def _colour(k: int) -> str:
    """Six colours; the lines after the sixth are dashed."""
    return f"c{1 + k % svg.N_COLOURS}" + (" dashed" if k >= svg.N_COLOURS else "")
