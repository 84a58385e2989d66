"""The model and its data in plain facts."""

from certifit.data.privacy import FEWEST
from certifit.models.learner import Params, Words
from certifit.report import text
from certifit.report.coefficients import why_no_intercept
from certifit.report.columns import column_facts
from certifit.report.facts import Fit, Table
from certifit.report.usage import held_values


def model_facts(fit: Fit) -> Table:
    """What was fitted, and how it is called."""
    model = fit.model
    alpha = None if model.alpha_ is None else float(model.alpha_)
    parameters = {**fit.params} | ({} if alpha is None else {"alpha": alpha})
    if hasattr(fit.inference, "family"):
        parameters |= {"family": fit.inference.family.name, "link": fit.inference.link}
    n_columns = len(model.column_names_)
    return {
        "kind": type(model).__name__,
        "words": _named(fit.words, parameters),
        "minimised": fit.words.minimised,
        "objective": str(model.objective),
        "target": str(model.target_name_),
        "intercept": fit.has_intercept,
        "alpha": alpha,
        "parameters": {name: value for name, value in parameters.items() if isinstance(value, int | float | str)},
        "basis": None if model.basis_ is None else _basis_words(fit),
        "n_features": int(model.n_features_in_),
        "n_columns": n_columns,
        "made": _made(fit, n_columns),
        "n_nonzero": n_columns if fit.weights is None else int((fit.weights != 0).sum()),
        "is_sparse": fit.words.is_sparse,
        "weaker": fit.words.weaker,
        "holds": held_values(fit),
        "monomials": _monomials(fit),
    }


def _named(words: Words, parameters: Params) -> str:
    """What the model is called, with the parameters filled in."""
    shown: dict[str, str] = {}
    for name, value in parameters.items():
        word = str(getattr(value, "name", value))  # families and links have names
        is_number = isinstance(value, int | float)
        shown[name] = "usual" if value is None else text.number(value, 6) if is_number else words.spelt.get(word, word)
    return words.name.format_map(shown)


def _made(fit: Fit, n_columns: int) -> str:
    """What the columns of the data became."""
    if fit.by_class is None and fit.weights is not None:
        return text.plural(n_columns + fit.has_intercept, "coefficient")
    encoder = fit.model.encoder_
    n_used = 0 if encoder is None else sum(kind.kind != "set aside" for kind in encoder.columns_)
    return f"{text.count(n_columns)} used" if n_used == n_columns else f"made into {text.count(n_columns)}"


def _basis_words(fit: Fit) -> str:
    degree, n_features = getattr(fit.model.basis, "degree", None), fit.source.n_features
    if degree is None:
        return f"sum of {len(fit.model.column_names_)} functions of {n_features} columns"
    what = "one column" if n_features == 1 else f"{n_features} columns"
    return f"polynomial of degree {degree} in {what}"


def _monomials(fit: Fit) -> dict[str, float] | None:
    model = fit.model
    if model.basis_ is None or not hasattr(model.basis, "degree"):
        return None
    if fit.printed.n_rare or why_no_intercept(fit):  # powers mix the terms, and the first is the intercept
        return None
    try:
        return {str(name): float(value) for name, value in model.monomials().items()}
    except (AttributeError, ValueError):
        return None


def data_facts(fit: Fit) -> Table:
    """Rows, weights, target and columns."""
    model, source, seen = fit.model, fit.source, fit.seen
    return {
        "named": source.named,
        "is_table": source.is_table,
        "skipped": getattr(source, "skipped", None),
        "checksummed": getattr(source, "checksummed", None),
        "notes": list([] if model.encoder_ is None else model.encoder_.notes_),
        "file_notes": list(getattr(source, "notes", [])),
        "shows_values": fit.printed.rule.shows,
        "fewest": FEWEST,
        "n_rows": seen.n_rows,
        "mass": seen.mass,
        "weighted": seen.mass != seen.n_rows,
        "target": _target(fit),
        "columns": column_facts(fit),
    }


def _target(fit: Fit) -> Table:
    """Its range, mean and spread, or its classes."""
    facts: Table = {"name": str(fit.model.target_name_)}
    facts |= dict.fromkeys(("mean", "sd", "low", "high", "classes"))
    seen = fit.means.target if fit.means is not None else None if fit.errors is None else fit.errors.seen.target
    if seen is not None:
        data = fit.model.data_
        facts |= {"mean": float(data["target_mean"]), "sd": float(data["target_sd"])}
        low, high = fit.printed.rule.ends(fit.seen.drawn.target, seen.low, seen.high)
        facts |= {"low": low, "high": high}
    if fit.by_class is not None:
        found = zip(fit.printed.labels, fit.printed_mass(fit.by_class.weights), fit.by_class.shares, strict=True)
        facts["classes"] = [{"label": label, "rows": rows, "share": share} for label, rows, share in found]
    return facts
