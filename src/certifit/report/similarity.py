"""What a kernel makes of the rows: how alike they are, in the order of their predictions."""

from __future__ import annotations

from certifit.evaluation.pictures.kernels import LEAST_ROWS, kept_gram
from certifit.report import text
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
