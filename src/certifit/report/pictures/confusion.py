"""The confusion matrix: of the rows of each class, the share that is predicted as each; the diagonal is right."""

from __future__ import annotations

from typing import Any

from certifit.evaluation.pictures.confusion import true_shares
from certifit.report import svg, text

# Cells of a matrix with more classes carry no numbers.
MOST_WITH_NUMBERS = 10
NAME = 16
# Shades of a share: the darkest two need light letters.
SHADES = (0.0, 0.02, 0.1, 0.25, 0.45, 0.7)


def draw_matrix(context: dict[str, Any]) -> str:
    """A shaded cell for every truth (down) and prediction (across); empty text without classes."""
    if context["classes"] is None:
        return ""
    matrix = context["classes"]["matrix"]
    labels, counts, rows = matrix["labels"], matrix["counts"], matrix["rows"]
    longest = max(len(text.visible(label, NAME)) for label in labels)
    left = 34 + svg.CHARACTER * longest
    is_few = len(labels) <= 4
    room, most = svg.WIDTH - left - 8, 64 if is_few else 46
    side = min(room / len(labels), most)
    width = room / len(labels) if is_few else side
    top = 44.0 if _fits(labels, width) else 24 + svg.CHARACTER * longest
    body = [_heads(left, top, width, side, labels)]
    shares = true_shares(counts, rows)
    for i, label in enumerate(labels):
        for j, other in enumerate(labels):
            place = (left + j * width, top + i * side, width, side)
            body.append(_cell(place, float(shares[i, j]), counts[i][j], i == j, len(labels), (label, other)))
    description = "; ".join(
        f"of {text.visible(label, 40)} {text.percent(float(shares[i, i]))} right" for i, label in enumerate(labels)
    )
    title = "Confusion matrix: truth down, prediction across"
    return svg.document("matrix", title, description, body, height=top + side * len(labels) + 10)


def _fits(labels: list[str], width: float) -> bool:
    return all(svg.CHARACTER * len(text.visible(label, NAME)) < width for label in labels)


def _heads(left: float, top: float, width: float, side: float, labels: list[str]) -> str:
    middle = left + width * len(labels) / 2
    parts = [
        f'<text class="label" x="{middle:.1f}" y="13" text-anchor="middle">predicted</text>',
        f'<text class="label" transform="translate(12 {top + side * len(labels) / 2:.1f}) rotate(-90)" '
        'text-anchor="middle">it is</text>',
    ]
    is_flat = _fits(labels, width)
    for k, label in enumerate(labels):
        name = svg.escape(label, NAME)
        x, y = left + (k + 0.5) * width, top + (k + 0.5) * side + 4
        turned = f'x="{x:.1f}" y="{top - 8:.1f}" text-anchor="middle"'
        if not is_flat:
            turned = f'transform="translate({x + 4:.1f} {top - 6:.1f}) rotate(-90)"'
        parts.append(f'<text class="name" {turned}>{name}</text>')
        parts.append(f'<text class="name" x="{left - 8:.1f}" y="{y:.1f}" text-anchor="end">{name}</text>')
    return "".join(parts)


def _cell(
    place: tuple[float, float, float, float],
    share: float,
    count: float,
    is_right: bool,
    n_classes: int,
    names: tuple[str, str],
) -> str:
    x, y, width, height = place
    shade = sum(share >= edge for edge in SHADES) if count else 0
    truth, predicted = (text.visible(name, 60) for name in names)
    tip = f"{truth} predicted as {predicted}: {text.plural(count, 'row')}, {text.percent(share)}"
    kind = f"d{shade}" if shade else "empty"
    kind += " right" if is_right else ""
    box = f'x="{x + 0.75:.1f}" y="{y + 0.75:.1f}" width="{width - 1.5:.1f}" height="{height - 1.5:.1f}"'
    parts = [f'<g><title>{svg.escape(tip)}</title><rect class="{kind}" {box}/>']
    if n_classes <= MOST_WITH_NUMBERS and count:
        light = " light" if shade >= 5 else ""
        middle = x + width / 2
        lines = [text.count(count), text.percent(share)] if n_classes <= 4 else [text.count(count)]
        first = y + height / 2 + 4 - 8 * (len(lines) - 1)
        parts += [
            f'<text class="{"in strong" if k == 0 else "in"}{light}" x="{middle:.1f}" y="{first + 17 * k:.1f}" '
            f'text-anchor="middle">{line}</text>'
            for k, line in enumerate(lines)
        ]
    return "".join([*parts, "</g>"])
