"""How alike the rows are to a kernel: means over groups of rows, in the order of their predictions."""

from __future__ import annotations

from typing import Any

from certifit.report import svg, text

SIDE = 250.0  # pixels
LEFT, TOP = 64.0, 12.0


def draw_gram(context: dict[str, Any]) -> str:
    """A square of shaded cells; empty text for models without a kernel of rows."""
    facts = context["similarity"]
    if facts is None:
        return ""
    means = facts["means"]
    least, most = min(map(min, means)), max(map(max, means))
    cell = SIDE / len(means)
    shades: dict[int, list[str]] = {}
    for i, row in enumerate(means):
        for j, mean in enumerate(row):
            share = (mean - least) / (most - least) if most > least else 1.0
            corner = f"M{LEFT + j * cell:.1f} {TOP + SIDE - (i + 1) * cell:.1f}"
            size = f"h{cell + 0.2:.1f}v{cell + 0.2:.1f}h{-cell - 0.2:.1f}z"
            shades.setdefault(1 + int((svg.N_SHADES - 1e-9) * share), []).append(corner + size)
    body = [f'<path class="d{shade}" d="{"".join(cells)}"/>' for shade, cells in sorted(shades.items())]
    body += [_axis(), _key(least, most)]
    description = (
        f"Mean of the kernel over pairs of rows, ordered by prediction: {text.number(facts['near'], 2)} near the "
        f"diagonal, {text.number(facts['far'], 2)} between the lowest and the highest predictions."
    )
    return svg.document("gram", "How alike rows are to the kernel", description, body, height=TOP + SIDE + 46)


def _axis() -> str:
    words = "rows, from the lowest to the highest prediction"
    middle = LEFT + SIDE / 2
    return (
        f'<text class="label" x="{middle:.1f}" y="{TOP + SIDE + 24:.1f}" text-anchor="middle">{words}</text>'
        f'<text class="label" transform="translate({LEFT - 18:.1f} {TOP + SIDE / 2:.1f}) rotate(-90)" '
        'text-anchor="middle">the same rows</text>'
    )


def _key(least: float, most: float) -> str:
    """Shades from the least to the largest mean, beside the square."""
    left, height = LEFT + SIDE + 28, SIDE / svg.N_SHADES
    parts = [
        f'<rect class="d{k + 1}" x="{left:.1f}" y="{TOP + SIDE - (k + 1) * height:.1f}" width="16" '
        f'height="{height:.1f}"/>'
        for k in range(svg.N_SHADES)
    ]
    for value, y in ((most, TOP + 10), (least, TOP + SIDE)):
        parts.append(f'<text class="tick" x="{left + 24:.1f}" y="{y:.1f}">{text.number(value, 2)}</text>')
    parts.append(f'<text class="tick" x="{left + 24:.1f}" y="{TOP + SIDE / 2:.1f}">mean of k(x, z)</text>')
    return "".join(parts)
