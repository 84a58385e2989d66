"""The columns of a selection in the order of its path, each with the error once it is in."""

from typing import Any

from certifit.report import svg, text

ROW = 19
MOST_ROWS = 26
NAME = 30


def draw(context: dict[str, Any]) -> str:
    """A row per step: the column that comes in, and the error with it. Rows beyond the chosen one are few."""
    if context["selection"] is None:
        return ""
    chosen = context["selection"]["steps"][context["selection"]["chosen"]]
    steps = ordered(context)[:MOST_ROWS]
    ends = [step["error"] + sign * step["standard_error"] for step in steps for sign in (-1, 1)]
    longest = max(len(label(step)) for step in steps)
    bottom = 14.0 + ROW * len(steps)
    frame = svg.Frame(
        svg.widened((min(ends), max(ends)), 0.04),
        (len(steps) - 0.5, -0.5),
        44 + svg.CHARACTER * longest,
        top=10,
        bottom=bottom,
    )
    body = [svg.x_axis(frame, f"error of {text.visible(context['model']['target'])} on new rows")]
    body.append(frame.line([(step["error"], k) for k, step in enumerate(steps)], "join"))
    body += [_row(frame, k, step, step is chosen) for k, step in enumerate(steps)]
    words = "; ".join(f"{step['n_features']} {label(step)} {text.number(step['error'], 3)}" for step in steps)
    return svg.document("names", "Columns along the path", words, body, height=bottom + 46)


def ordered(context: dict[str, Any]) -> list[dict[str, Any]]:
    """Steps from the fewest columns to the most."""
    return sorted(context["selection"]["steps"], key=lambda step: step["n_features"])


def label(step: dict[str, Any]) -> str:
    """What came in; many at once are counted."""
    names = step["added"]
    return text.visible(names[0], NAME) if len(names) == 1 else f"{text.count(len(names))} columns"


def _row(frame: svg.Frame, k: int, step: dict[str, Any], is_chosen: bool) -> str:
    y, x = frame.py(k), frame.px(step["error"])
    low, high = (frame.px(step["error"] + sign * step["standard_error"]) for sign in (-1, 1))
    error, plus_minus = text.measured(step["error"], step["standard_error"])
    tip = f"{step['n_features']}: {text.joined(step['added'], 10)}, error {error} ± {plus_minus}"
    kind = "name strong" if is_chosen else "name"
    dot = (
        svg.marked(frame, step["error"], k)
        if is_chosen
        else f'<path class="dot s6" stroke-width="6" d="M{x:.1f} {y:.1f}h0"/>'
    )
    return (
        f'<g><title>{svg.escape(tip)}</title><text class="{kind}" x="{frame.left - 34:.1f}" y="{y + 4:.1f}" '
        f'text-anchor="end">{svg.escape(label(step))}</text><text class="tick" x="{frame.left - 10:.1f}" '
        f'y="{y + 4:.1f}" text-anchor="end">{step["n_features"]}</text>'
        f'<path class="whisker" d="M{low:.1f} {y:.1f}H{high:.1f}"/>{dot}</g>'
    )
