"""One plain dictionary with everything the report shows. JSON types only; None where there is no value.

The page, report.json, the model card and the pictures are all made from it, so they cannot tell different numbers.

format        "certifit report"; version of this list of keys, 4; certifit: version of the package
files         data, paths, scan, bad_rows: what was read and how; model, report, card, coefficients, deciding,
              selection (the last three or None): names as a reader types them; weight, offset,
              exposure: their columns or None
sections      what the page shows, in order [{name, title, short, key (of this dictionary)}]
figures       the pictures, in order [{name, section, title, caption, description, file}]
answer        the result in a few sentences
model         kind, words, minimised (the size that the proof speaks of), objective, target, intercept, alpha (None
              without a penalty), parameters, basis, n_features, n_columns, made (what they became, in words),
              n_nonzero, is_sparse, weaker (how to fit without the penalty), holds (what the model file holds of the
              data, in words), monomials
data          named (columns came with names), is_table, n_rows, mass (sum of weights), weighted,
              read_as {column of a file that is not written plainly: how it was read, as types= takes it},
              skipped (bad rows) and checksummed (None when not a file), notes, file_notes: sentences,
              shows_values (else values that fewer than `fewest` rows hold are not here: see data/privacy.py),
              target {name, mean, sd, low, high (None for classes), classes (None, or [{label, rows, share}])},
              columns [{name, kind: number | flag | levels | date | text | set aside, type, missing, distinct, mean,
              sd, low, high, first, last (dates; low to last are 5 and 95 % quantiles, by month, unless shows_values),
              constant, levels [[level, share of rows]], reference, reason (why set aside),
              alone (share of the variance of the target that it explains by itself; for classes, of the uncertainty
              about the class that it removes)}]
relation      None, or what every row obeys, to rounding: formula ("y = a + b"), n_rows, largest (difference in any row)
checks        [{name, level: ok | note | warn, text, details}]
quality       None for classes and generalised linear models, or
              r2, adjusted_r2, centered, flexible (it can follow single rows), sigma (typical error), sigma_words,
              rmse, mean_error, df, f, f_p, exact, metric (None, or what a model without an R² is scored by: name,
              value, baseline (the best constant), explained (1 - value / that of the baseline)),
              outside95 (share of residuals beyond 1.96 sigma), largest (in sigma),
              spread_ratio (widest over narrowest middle half along the predictions),
              quartiles (of the residuals: 5, 25, 50, 75, 95 %)
deviance      None, or of a generalised linear model: family, link, deviance, null_deviance, explained (share), pearson,
              df_resid, df_null, dispersion, is_estimated (the dispersion), log_likelihood, aic, bic, ratio, ratio_df,
              ratio_p (test of all columns together), spread (pearson / df_resid where 1 is the family's, of counts),
              None where not known; lift None or {is_rate, is_new (predicted by folds without the
              row), groups [{rows, exposure, predicted, observed, low, high}]}, rows by predicted rate in groups of
              equal exposure; sentences
coefficients  None for a model of classes without one coefficient per column, or
              level, has_inference (some coefficient has a p-value), has_intervals (so have predictions), reason (what
              has none, and why), notes, rows [{name, estimate, determined (None: not asked), error, t, p, low, high,
              robust_error,
              robust_p, robust_low, robust_high, digits, column, level, effect, effect_low, effect_high, ratio,
              ratio_low, ratio_high (e^coefficient), step_ratio, step_ratio_low, step_ratio_high (e^effect)}];
              ratio: None, or what e^coefficient is (rate ratio, odds ratio); law: of the tests, t or z;
              effect = coefficient times the spread (sd) of its column; robust: None or {kind, holds, sentences};
              chosen: None, or where coefficients may be zero {n_nonzero, kept, dropped: columns};
              collinear: columns of strong variance inflation [{column, vif, like (its nearest), correlation}];
              pooled: levels and words that are not shown [{column, n, words}];
              groups, one a category [{column, reference, is_reference_rare, n_pooled, reference_rows, n_levels, effect,
              f, p}], f and p of the test
              of all its levels together
classes       None, or what predicted probabilities are worth: is_new (no model saw its rows; else rows of the fit),
              n_rows, n_drawn (rows that curves are made of), level, labels, n_classes, positive (place of the label
              that
              precision and recall speak of; None with more than two), metrics {accuracy, log_loss, auc, f1,
              balanced_accuracy: {value, low, high}}, baseline (the class shares alone) {label, accuracy, log_loss},
              confidence (mean probability of what is predicted), matrix {labels, counts (truth in rows), rows,
              n_left_out}, pairs (mistakes, most frequent first) [{truth, predicted, rows, share}], calibration {error,
              is_even (bins are equally wide, else of equally many rows), bins [{count, predicted, observed, low,
              high}], verdict {level: right | slight | wrong | unknown, direction, words, sentence}},
              costs (None, or by_label [{label, cost}], threshold (of the positive class), constant_label, is_new, and
              mean costs per row: decided, most_probable, constant: {value, standard_error}),
              cuts (thresholds) [{cut, called, precision, recall,
              accuracy}], rows [{label, rows, share, predicted, precision, recall, f1, auc: {value, low, high},
              average_precision}], curves [{label, share, auc, average_precision, roc, precision_recall: points}],
              sentences
deciding      None, or what decides between classes: what: words | odds | spreads, labels, n_columns, rows, first those
              that decide most [{name, column, is_share (mean is a share of rows), log_odds,
              evidence, count, mean, sd: a number per class, or None}],
              sentences; see report/what_decides.py for the formulas
shuffled      None, or of a model without coefficients and splits: columns [{name, moves}], what (is measured), n_other,
              n_rows, sentences; see report/shuffled.py
splits        None, or of a model of trees: nodes (None, or of a single tree, in the order of reading [{node, depth,
              reached_by, question, answer, share, parts (shares of the classes, or where the mean lies), is_cut,
              n_rows, ...}]), labels, n_nodes, columns [{name, share (of the gains of all splits), low, high}], n_other,
              rounds (None, or {name of a line: values per round}), sentences
path          None, or alphas (largest first), chosen, n_nonzero, n_columns, lines [{name, entered (the largest alpha
              with a weight), weights, effects}], n_other (columns that are not drawn), sentences
influence     None, or n_coefficients, df_resid, mean_leverage, grid (log10 leverage, studentised residual),
              high_leverage, far, much: counts of rows,
              counted (how places count), rows [{row (from 0), place (in the file), leverage,
              residual, studentised, cooks_distance, dffits}], sentences
outliers      None, or delta, scale, limit, n_beyond, share, counted, rows [{row (from 0), place, residual,
              scales, pull}], sentences
similarity    None, or of a model that keeps its rows for a kernel: kernel (in one line), n_kept, means (of k, groups x
              groups of rows by prediction), near (mean within groups), far (lowest against highest), sentences
learning      None, or of a network: epochs, lines {name: a value per epoch}, layers, n_parameters, n_checked, n_kinks
              (derivatives compared with differences, and left out), gradient_norm, relative_norm, starts (objectives
              at the ends of all starts), sentences
widths        None, or of local regression: tau, taus, errors (by leave-one-out), chosen (place of tau among them),
              degrees, n_points, n_singular, worst, median: condition numbers of the local systems, sentences
certificate   holds, value, tolerance, rounding, rank, n_columns, condition, dependent, claim, theorem, sentences,
              prediction_moves (bound, root mean square; None: no bound), fault (why there is no proof, or None),
              remedy (what to do then), is_local (an estimate near the fit, no proof),
              goal (words: chosen, better, lower, unit, done, question, proven, failed, agreed), words
history       None, or n_steps, rows [{iteration, objective, gap, step}], sentences
validation    None, or the errors on rows that the fits did not see: n_splits, group (column that stays in one fold),
              rule, best, chosen, measure (what error is: root mean squared error, log loss, error rate, mean
              deviance),
              share (what r2 is called: R², or Explained for deviances),
              rows [{name, is_baseline, is_best, is_chosen, error, standard_error, train_error, r2, difference (to the
              best), difference_error, params, route, folds,
              scores (None, or of classes as metrics)}],
              separated (None, or of a model that was passed over for its likelihood has no maximum {model, sentence:
              the direction that proves it}),
              sentences, notes, caution, curve None or {model, parameter, label, values, validation, validation_error,
              train,
              train_error, best, chosen}, decomposition None or {values, error, variance, bias_and_noise, n_draws}
              of squared errors; no rows where it was not possible: sentences say why,
              choice None or {n_candidates, method (BBC-CV, or Tibshirani and Tibshirani), scoring, winner, corrected
              {value, low, high}, nested None or {score, standard_error}, the same as winner_accuracy,
              corrected_accuracy and nested_accuracy, n_nested_refits}: scores, higher is better, of all rows together,
              holdout None or {share, n_rows, measure, value, low, high, method, baseline, others}
selection     None, or direction, wanted, fixed, features, chosen (place of its step), redundant: sentences,
              steps [{n_features, change, added (to the step before with fewer), features, error, standard_error,
              train_error, folds}]
warnings      [{level: bad | warn | note, title, text, action}], worst first; notices: those that are not bad
usage         python, shell: lines
questions     {} where no errors on new rows are known, or rows [{question, answer}]: rich enough, optimum, new rows
pictures      None for classes and generalised linear models, or
              what pictures of residuals are drawn from: fit, spread: grids (fit: is_new, predicted by folds without the
              row); bands; histogram;
              quantiles; curve or None
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from certifit.data.privacy import Rule
from certifit.data.source import Source
from certifit.models.least_squares.inference import seen_once
from certifit.report.answer import answer
from certifit.report.checks import find_checks, relation_facts
from certifit.report.facts import Fit
from certifit.report.model import model_facts
from certifit.report.notices import find_notices
from certifit.report.passes import HIDES
from certifit.report.quality import picture_facts
from certifit.report.sections import SECTIONS, figures, shown
from certifit.report.shell import in_shell_words
from certifit.report.text import Table
from certifit.runtime import one_blas_thread

VERSION = 4


@one_blas_thread
@seen_once()
def build(
    model: Any,
    source: Source,
    files: Mapping[str, Any],
    level: float = 0.95,
    validation: Table | None = None,
    selection: Table | None = None,
    positive: Any = None,
    rule: Rule = HIDES,
) -> Table:
    """The dictionary, from a fitted model and the data it was fitted on.

    validation, selection: from `report.validation`. positive: the label of two that precision and recall speak of.
    rule: whether cell values that few rows hold are printed.
    """
    fit = Fit.of(model, source, files, level, validation, selection, positive, rule)
    context: Table = {"format": "certifit report", "version": VERSION, "certifit": _version()}
    context |= {"files": dict(files), "model": model_facts(fit), "selection": selection}
    context |= {section.key: section.build(fit) for section in SECTIONS if section.build is not None}
    context["pictures"] = picture_facts(fit, context["quality"])
    context["relation"] = relation_facts(fit)
    context = in_shell_words(fit.printed.mask.deep(_plain(context)))
    # From here on words, made from the facts alone.
    context["checks"] = find_checks(context)
    context["warnings"] = find_notices(context)
    context["notices"] = [notice for notice in context["warnings"] if notice["level"] != "bad"]
    context["answer"] = answer(context)
    context |= {section.key: section.tell(context) for section in SECTIONS if section.tell is not None}
    context["sections"] = shown(context)
    context["figures"] = figures(context)
    plain = _plain(context)
    assert isinstance(plain, dict)
    return plain


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("certifit")
    except PackageNotFoundError:
        return "unknown"


_AS_THEY_ARE = frozenset({str, bool, int, type(None)})  # what nearly all values are is told at once


def _plain(value: Any) -> Any:
    """JSON types: numbers of NumPy become Python's, numbers that are not finite become None."""
    kind = type(value)
    if kind in _AS_THEY_ARE or (kind is float and math.isfinite(value)):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(item) for item in value]
    if isinstance(value, (bool, np.bool_, int, np.integer)):
        return bool(value) if isinstance(value, (bool, np.bool_)) else int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return value if value is None else str(value)
