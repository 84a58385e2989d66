"""What a kernel makes of the rows: how alike they are, in the order of their predictions.

The pen draws means over groups of rows.
"""

from __future__ import annotations

from typing import Any

from certifit.evaluation.pictures.kernels import LEAST_ROWS, kept_gram
from certifit.report import svg, text
from certifit.report.facts import Fit
from certifit.report.text import Table


def similarity_facts(fit: Fit) -> Table | None:
    """Means of the kernel over groups of 5 rows or more; None for models that are not fitted to a kernel of rows."""
    model = fit.model
    if "similarity" not in fit.sections or model.kernel_ is None or len(model.X_fit_) < 2 * LEAST_ROWS:
        return None
    means = kept_gram(model).means
    near = float(means.diagonal().mean())
    far = float(means[0, -1])
    kept = "landmarks" if fit.params.get("n_landmarks") is not None else "rows"
    is_flat = len(means) > 1 and far > 0.9 * near
    too_wide = " Rows that differ are hardly told apart: the width may be too large." if is_flat else ""
    sentences = [
        f"The prediction for a row is a sum over the {text.count(len(model.X_fit_))} {kept} that the model keeps, each "
        "by how alike it is to the kernel.",
        f"Two rows of nearly the same prediction are alike to {text.number(near, 2)} on average, two from opposite "
        f"ends to {text.number(far, 2)}.{too_wide}",
    ]
    return {
        "kernel": str(model.kernel_),
        "n_kept": len(model.X_fit_),
        "means": means.round(6).tolist(),
        "near": near,
        "far": far,
        "sentences": sentences,
    }


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
