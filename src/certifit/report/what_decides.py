"""What decides between the classes: log-odds of words and counts, of columns, or the means and spreads of each class.

Which of them, the row of the model in the table says. All numbers are in the order of the classes.

    words     log p_jk - log p_j(rest): how much one occurrence of column j speaks for class k; rest: the other classes,
              in their shares; evidence: what it brings in a row of class k on average, n_jk / n_k times that
    odds      w_jk - sum_l share_l w_jl, times the spread (sd) of column j; of two classes, w_j1 - w_j0
    spreads   mean and sd of column j in class k; evidence: the share of the uncertainty that it alone removes

The pens draw bars of log-odds for and against the positive class, or the bell curves of every class.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.data.privacy import FEWEST
from certifit.evaluation.importance import word_evidence, word_log_odds
from certifit.report import svg, text
from certifit.report.class_passes import ByClass, are_flags
from certifit.report.facts import Fit, pooled_words
from certifit.report.text import Table

# Numbers that are kept: columns times classes. The others are in the model file.
MOST_NUMBERS, MOST_ROWS = 40_000, 2000
SPREADS_MADE = 2000  # columns whose information is worked out one by one


def deciding_facts(fit: Fit) -> Table | None:
    """The columns that decide most, first those that decide most; None where the model does not tell."""
    if fit.by_class is None:
        return None
    way = next((WAYS[name] for name in fit.sections if name in WAYS), None)
    if way is None:
        return None
    facts = way(fit.model, fit.by_class)
    names, columns = _labels(fit)
    size = np.nan_to_num(np.abs(facts["evidence"])).max(axis=0)
    is_rare, is_few = fit.printed.is_rare, fit.printed.is_rare_label
    n_classes = len(fit.by_class.classes)
    order = np.argsort(-size, kind="stable")
    kept = order[~is_rare[order]][: max(1, min(MOST_ROWS, MOST_NUMBERS // n_classes))]
    numbers = {key: values for key in KEYS if (values := facts.get(key)) is not None}
    of_all = ("evidence",) if facts["what"] == "spreads" else ()  # one number for all classes
    rows = [
        dict.fromkeys(KEYS)
        | {"name": names[j], "column": columns[j], "is_share": _is_share(facts, j)}
        | {key: np.where(is_few & (key not in of_all), np.nan, values[:, j]) for key, values in numbers.items()}
        for j in kept
    ]
    return {
        "what": facts["what"],
        "labels": fit.printed.labels[: MOST_NUMBERS // 2],
        "n_columns": len(names),
        "rows": rows,
        "sentences": [facts["sentence"], *_left_out(len(names) - fit.printed.n_rare, len(rows)), *_pooled(fit)],
    }


KEYS = ("log_odds", "evidence", "count", "mean", "sd")


def _is_share(deciding: Table, j: int) -> bool:
    """Whether the means of a column are shares of rows."""
    return "mean" in deciding and bool(are_flags(deciding["mean"][:, j], deciding["sd"][:, j] ** 2))


def _words(model: Any, by_class: ByClass) -> Table:
    log_odds = word_log_odds(model.feature_log_prob_, by_class.shares)
    evidence = word_evidence(log_odds, model.feature_count_, model.class_count_)
    sentence = (
        "How much more often a word or level comes in one class than in the others is how much it speaks for it. First "
        "those that tell most in a row of their class: much more often there, and often enough to matter."
    )
    return {"what": "words", "log_odds": log_odds, "evidence": evidence, "count": model.feature_count_} | {
        "sentence": sentence
    }


def _odds(model: Any, by_class: ByClass) -> Table:
    return _of_weights(model, by_class, model.coef_)


def _mapped_odds(model: Any, by_class: ByClass) -> Table:
    return _of_weights(model, by_class, mapped_weights(model))


def _of_weights(model: Any, by_class: ByClass, coef: Array) -> Table:
    weights = np.vstack([-coef, coef]) if len(coef) == 1 else coef
    if len(weights) > 2:
        weights = weights - by_class.shares @ weights
    sd = np.sqrt(by_class.fitted.total_variances())
    sentence = (
        "The log-odds of a class are a sum over the columns. Each one counts with its weight: how much the log-odds "
        "change when it rises by one standard deviation and the others stay."
    )
    kinds = [] if model.encoder_ is None else [kind.kind for kind in model.encoder_.columns_]
    if "level" in kinds:
        sentence += " A level counts against the reference of its category."
    return {"what": "odds", "log_odds": weights, "evidence": weights * sd, "sentence": sentence} | _moments(by_class)


def mapped_weights(model: Any) -> Array:
    """Weights of log-odds that are maps of scores: slopes of the maps times the weights of the scores."""
    slopes = np.array([[float(np.ravel(one.coef_)[0])] for one in model.maps_])
    return np.asarray(slopes * model.final_.coef_)


def _spreads(model: Any, by_class: ByClass) -> Table:
    n_columns = by_class.fitted.means.shape[1]
    told = [by_class.told_by_fitted(j) or 0.0 for j in range(min(n_columns, SPREADS_MADE))]
    evidence = np.zeros((len(by_class.classes), n_columns))
    evidence[:, : len(told)] = told
    sentence = (
        "Each class has its own mean and spread of every column; a row goes to the class whose bell curves hold it "
        "best. First the columns that alone remove most of the uncertainty about the class."
    )
    return {"what": "spreads", "evidence": evidence, "sentence": sentence} | _moments(by_class)


def _moments(by_class: ByClass) -> Table:
    return {"mean": by_class.fitted.means, "sd": np.sqrt(by_class.fitted.variances)}


# section of a model -> what it tells
WAYS: dict[str, Callable[[Any, ByClass], Table]] = {
    "words": _words,
    "odds": _odds,
    "mapped odds": _mapped_odds,
    "spreads": _spreads,
}


def _labels(fit: Fit) -> tuple[list[str], list[str]]:
    """Name of every fitted column, a word without the name of its text where there is one text only; its column."""
    model, names = fit.model, fit.printed.columns
    encoder = model.encoder_
    if encoder is None or model.basis_ is not None:
        return names, names
    texts = [kind for kind in encoder.columns_ if kind.kind == "text"]
    shown: list[str] = []
    columns: list[str] = []
    for kind in encoder.columns_:
        made = kind.names_out(kind.name)
        short = kind.kind == "text" and len(texts) == 1
        shown += [name.removeprefix(f"{kind.name}: ") for name in made] if short else made
        columns += [kind.name] * len(made)
    return shown, columns


def _pooled(fit: Fit) -> list[str]:
    """What is not printed: levels and words of few rows, and what speaks for a class of few rows."""
    said = [f"{pooled_words(fit.printed.n_rare, 'level or word', 'levels and words')}."] if fit.printed.n_rare else []
    few = [label for label, is_few in zip(fit.printed.labels, fit.printed.is_rare_label, strict=True) if is_few]
    if few:
        said.append(f"No numbers of {text.joined(few, 5)}: those of fewer than {FEWEST} rows would tell their values.")
    return said


def _left_out(n_columns: int, n_rows: int) -> list[str]:
    if n_rows == n_columns:
        return []
    return [f"The first {text.count(n_rows)} of {text.count(n_columns)} are kept here; the model file has all of them."]


def spoken(deciding: Table, k: int, most: int) -> list[Table]:
    """The rows that speak most for class k."""
    rows = [row for row in deciding["rows"] if (row["evidence"][k] or 0) > 0]
    return sorted(rows, key=lambda row: -row["evidence"][k])[:most]


MOST = 16
ROW = 21  # height of the row of a name
APART = 5  # pixels between the lines of two classes
NAME = 24


def draw_deciding(context: dict[str, Any]) -> str:
    """Empty text where there is nothing to compare."""
    deciding, classes = context["deciding"], context["classes"]
    if deciding is None or classes is None:
        return ""
    drawn = PENS[deciding["what"]](deciding, classes)
    if drawn is None:
        return ""
    title, description, body, height = drawn
    return svg.document("deciding", title, description, body, height=height)


Drawn = tuple[str, str, list[str], float]


def _word_bars(deciding: dict[str, Any], classes: dict[str, Any]) -> Drawn | None:
    """Of two classes: the words that speak most for each, by their log-odds."""
    positive = classes["positive"]
    if positive is None:
        return None
    rows = spoken(deciding, positive, MOST // 2) + spoken(deciding, 1 - positive, MOST // 2)
    label = text.visible(deciding["labels"][positive], 20)
    return _bars([(row["name"], row["log_odds"][positive]) for row in rows], f"log-odds of {label}, each time it comes")


def _odds_bars(deciding: dict[str, Any], classes: dict[str, Any]) -> Drawn | None:
    positive = classes["positive"]
    if positive is None:
        return _bells(deciding, classes)
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


def largest_classes(deciding: dict[str, Any], classes: dict[str, Any]) -> list[int]:
    """Places of the largest classes that have means to draw, as many as there are colours, in their order."""
    sizes = {row["label"]: row["rows"] for row in classes["rows"]}
    labels = deciding["labels"]
    known = [k for k in range(len(labels)) if any(row["mean"][k] is not None for row in deciding["rows"])]
    return sorted(sorted(known, key=lambda k: -sizes.get(labels[k], 0))[: svg.N_COLOURS])


def _bells(deciding: dict[str, Any], classes: dict[str, Any]) -> Drawn | None:
    """Mean and spread of each of the largest classes, in units of the spread over all rows."""
    places, rows = largest_classes(deciding, classes), deciding["rows"][:MOST]
    labels = [deciding["labels"][place] for place in places]
    if len(labels) < 2 or not rows:
        return None
    scaled = [(row["name"], _scaled(row, places)) for row in rows]
    ends = [mean + sign * sd for _, bell in scaled for _, mean, sd in bell for sign in (-1, 1)]
    if not ends:
        return None
    names = [name for name, _ in scaled]
    keys = [(f"line-many c{c + 1}", text.visible(one, 20)) for c, one in enumerate(labels)]
    n_more = svg.legend_rows(_frame(names, (min(ends), max(ends))).left, keys) - 1
    row = max(ROW, 6 + APART * len(labels))
    frame = _frame(names, (min(ends), max(ends)), top=28.0 + svg.KEY_ROW * n_more, row=row)
    body = [svg.x_axis(frame, "standard deviations from the mean")]
    for k, (name, bell) in enumerate(scaled):
        body.append(_name(frame, k, name))
        for c, mean, sd in bell:
            y = frame.py(k) + (c - (len(labels) - 1) / 2) * APART
            low, high, x = frame.px(mean - sd), frame.px(mean + sd), frame.px(mean)
            tip = svg.escape(f"{text.visible(name)}, {text.visible(labels[c], 40)}: {text.number(mean, 2)}")
            body.append(
                f'<g><title>{tip}</title><path class="line-many c{c + 1}" d="M{low:.1f} {y:.1f}H{high:.1f}"/>'
                f'<path class="dot point c{c + 1}" stroke-width="6.5" d="M{x:.1f} {y:.1f}h0"/></g>'
            )
    body.append(svg.legend(frame, keys))
    words = "Mean and standard deviation of each class: " + "; ".join(
        f"{text.visible(name, 40)} " + ", ".join(text.number(mean, 2) for _, mean, _ in bell) for name, bell in scaled
    )
    return "Means and spreads of the classes", words, body, frame.bottom + 46


def _scaled(row: dict[str, Any], places: list[int]) -> list[tuple[int, float, float]]:
    """(k, mean, sd) of class places[k] where it has them, about the mean of these means, over the overall spread."""
    numbers = enumerate((row["mean"][place], row["sd"][place]) for place in places)
    known = [(k, mean, sd) for k, (mean, sd) in numbers if mean is not None and sd is not None]
    centre = sum(mean for _, mean, _ in known) / max(len(known), 1)
    total = sum((mean - centre) ** 2 + sd * sd for _, mean, sd in known) / max(len(known), 1)
    size = total**0.5 or 1.0
    return [(k, (mean - centre) / size, sd / size) for k, mean, sd in known]


PENS: dict[str, Callable[[dict[str, Any], dict[str, Any]], Drawn | None]] = {
    "words": _word_bars,
    "odds": _odds_bars,
    "spreads": _bells,
}


def _frame(names: list[str], x: svg.Range, top: float = 10.0, row: int = ROW) -> svg.Frame:
    longest = max(len(text.visible(name, NAME)) for name in names)
    bottom = top + 4 + row * len(names)
    return svg.Frame(
        svg.widened(x, 0.04), (len(names) - 0.5, -0.5), left=14 + svg.CHARACTER * longest, top=top, bottom=bottom
    )


def _name(frame: svg.Frame, k: int, name: str) -> str:
    return (
        f'<text class="name" x="{frame.left - 8:.1f}" y="{frame.py(k) + 4:.1f}" text-anchor="end">'
        f"{svg.escape(name, NAME)}</text>"
    )
