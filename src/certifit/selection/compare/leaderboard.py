"""Models side by side: each tuned and scored on the same splits, beside the mean of y or the shares of the classes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.dummy import DummyRegressor

from certifit.data.cells import GroupSizes, Splits
from certifit.data.labels import with_codes
from certifit.data.privacy import printed_labels, rule
from certifit.data.source import Source
from certifit.data.target import label_counts
from certifit.data.user_input import UserLabels, UserRows, UserTarget, UserWeights
from certifit.models.adapter import learner_of
from certifit.models.folds import Candidate
from certifit.models.least_squares.fold_path import FoldPath
from certifit.models.metric import Metric
from certifit.selection.compare.cross_validated import CrossValidated, results_table
from certifit.selection.compare.decomposition import Decomposition, decompose
from certifit.selection.compare.leaderboard_table import (
    BASELINE,
    CLASS_SCORE,
    RATE,
    RMSE,
    SHARES,
    BestConstant,
    Entry,
    Leaderboard,
    MeanOfTarget,
    MeanRate,
    class_shares,
    without_columns,
)
from certifit.selection.compare.nested import Nested, nested_choice
from certifit.selection.compare.rules import (
    RULES,
    TOO_MANY,
    Choosing,
    Evidence,
    Preference,
    choose,
    evidence_of,
    row_scores_are_few,
)
from certifit.selection.compare.trial import Job, Trial, Tried
from certifit.selection.folds.class_validation import ClassValidation, validated, validated_rows
from certifit.selection.folds.engine import evaluate
from certifit.selection.folds.fold_scores import FoldScores, NoFit, mean_path, path_scores
from certifit.selection.folds.metrics import Scoring, own_scoring, sufficient
from certifit.selection.folds.rows import Rows, refuse_given
from certifit.selection.folds.splits import ANYWHERE, Folds, UserSplits, rounds_of, row_count

FEWEST_ROWS = 4  # two folds of two rows


def leaderboard(
    models: Mapping[str, BaseEstimator],
    X: UserRows,
    y: UserTarget = None,
    *,
    cv: UserSplits = 10,
    scoring: Scoring = None,
    rule: str = "min",
    sample_weight: UserWeights = None,
    groups: UserLabels = None,
    offset: UserWeights = None,
    exposure: UserWeights = None,
    prefer: str | Sequence[Sequence[str]] | None = None,
    because: str | Sequence[str] = "it is preferred",
    most_refits: int | None = None,
    race: bool = False,
    nested: bool = False,
    n_decomposed: int = 0,
) -> Leaderboard:
    """Tune and score models on the same splits of the rows, beside the mean of y or the shares of the classes.

    Parameters
    ----------
    models : dict {name: model}, all regressors or all classifiers
        A Ridge whose alpha is None is tuned over its own candidates, as in CrossValidated; one with an alpha is scored
        as it is. CrossValidated(model, param_grid, rule=...) brings its candidates and its rule; its cv and scoring
        give way to those here.
    X, y, sample_weight, groups, offset, exposure : as for CrossValidated: arrays, frames, or a scan that carries them
    cv : as for CrossValidated, but no "loo", default 10
        A number of folds keeps the shares of the classes in each, unless there are groups.
    scoring : name, callable or None, default None
        None is "neg_root_mean_squared_error" for regressors, "neg_log_loss" for classifiers, "accuracy" where one of
        them gives no probabilities; the negative mean deviance where all models are of one family of counts or
        positive quantities, the negative mean pinball loss where all are of one quantile. Models of different
        quantiles are refused: one error cannot rank them.
    rule : {"min", "1se"}, default "min"
        Which candidate of a model is taken.
    prefer, because : name of the model that is chosen where it is within one standard error of the best; and why
        Or groups of names, the simplest models first, and a reason per group: chosen is the best model of the first
        group that has one within one standard error of the best.
    most_refits : int or None, default None
        A model that sums over rows do not determine is tried on fewer candidates, evenly spaced, until it needs at most
        so many refits; it is left out where fewer than 5 would remain. `notes` says so. A model without a fit on the
        training rows of some split is left out too.
    race : bool, default False
        Stop a model that needs refits after 2, 4 or 8 splits where it can hardly be chosen any more: where on their
        rows it is behind a model before it, and three standard errors of the mean difference do not lift it to the lead
        that it needs, one standard error over a simpler model (`prefer`) and none over others. It has no entry then,
        and `notes` has its figures. Candidates that are refitted are stopped so too, beside the best of their model,
        where rule is "min". Put simple models first. Nothing is stopped with nested=True, nor where there are too many
        rows to keep a score for each.
    nested : bool, default False
        Repeat the whole choice on the training rows of every fold, which takes k - 1 times the work of the folds: fits
        from sums take no further pass over the rows, others are refitted.
    n_decomposed : int, default 0
        At so many candidates of the best ridge regression with more of them the error is split into variance,
        and bias and noise: `decomposition`. With 8 folds or more it takes no further pass over the rows.

    Returns
    -------
    Leaderboard: entries, best, chosen, baseline, corrected, nested_score, decomposition, to_frame(), sentences()

    >>> import numpy as np
    >>> import certifit as cf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> y = X @ [1.0, 2.0, 0.0] + rng.normal(size=60)
    >>> board = leaderboard({"least squares": cf.LinearRegression(), "ridge": cf.Ridge()}, X, y)
    >>> [entry.name for entry in board.entries][-1], sorted(board.best.params)
    ('mean of y', ['alpha'])
    """
    preference = Preference.of(prefer, because)
    jobs = _jobs(models, rule, preference)
    is_of_classes = is_classifier(jobs[0].estimator)
    is_unasked = scoring is None
    scoring = (_class_score(jobs) if is_of_classes else _error_of(jobs)) if scoring is None else scoring
    if isinstance(cv, str):
        raise ValueError(f"A leaderboard needs splits: a number of folds, Folds(...) or a splitter. Got cv={cv!r}.")
    beside = {"sample_weight": sample_weight, "groups": groups, "offset": offset, "exposure": exposure}
    first = Rows.of(jobs[0].estimator, X, y, **beside)
    known = {_form(jobs[0].estimator): first}
    rounds = rounds_of(cv, first.source, first.labels, first.groups)
    entries: list[Entry] = []
    notes = _unlike_notes(jobs, scoring) if is_unasked else []
    path = None
    trial = Trial(rounds, scoring, most_refits, preference if race and not nested else None)
    tried: list[Tried] = []
    with_rows = True
    for job in jobs:
        started = time.perf_counter()
        refuse_given(job.estimator, offset=offset, exposure=exposure)
        form = _form(jobs[0].estimator if isinstance(X, Source) else job.estimator)
        if form not in known:
            known[form] = Rows.of(job.estimator, X, y, **beside)
        rows = known[form]
        candidates = _candidates(job, rows, rounds)
        with_rows = with_rows and _are_few(rounds, rows, [*(one.candidates for one in tried), candidates])
        scored = trial.scored(job, rows, candidates, tried, notes, with_rows)
        if scored is None:
            continue
        tried.append(scored)
        if path is None and job.estimator.get_params(deep=False).get("fit_intercept", False):
            path = scored.scores.path
        entries.append(_entry(scored, rounds, started))
    if not entries:
        raise (TooManyRefits if most_refits is not None else NoFit)(" ".join(notes))
    entries.append(_shares(first, rounds, scoring) if is_of_classes else _baseline(first, rounds, scoring, path))
    evidence = _evidence(tried, first, scoring, "" if with_rows else TOO_MANY)
    repeated = _nested(tried, evidence.preferring(preference), rounds, scoring) if nested else None
    facts: dict[str, object] = {
        "scoring": scoring,
        "rule": rule,
        "weight": evidence.weight,
        "preference": preference,
        "decomposition": _decomposed(tried, rounds, n_decomposed) if n_decomposed else None,
    }
    return Leaderboard.of(entries, **facts, notes=notes, evidence=evidence, nested=repeated)


class TooManyRefits(ValueError):
    """Every model was left out: needs more refits than were allowed, or has no fit on some training rows."""


def folds_for(
    source: Source, n_splits: int = 10, *, is_classes: bool = False, copies: str = ANYWHERE
) -> tuple[Folds | None, str | None]:
    """Folds that the rows (or groups) of a scan allow, and a sentence where they are not `n_splits`.

    Fewer rows than folds: half as many folds as rows, so that a fold has two rows. None below 4 rows or 2 groups.
    is_classes: every fold has the same share of each class, unless there are groups; None where only one class has
    more than one row.
    """
    source = with_codes(source)[0] if is_classes else source
    folds, sentence = _folds_for(source, n_splits)
    if folds is not None:
        folds = Folds(folds.n_splits, copies=copies)
    if not is_classes or folds is None:
        return folds, sentence
    counts = label_counts(source)
    alone = [label for label, rows in counts.items() if rows < 2]
    if len(counts) - len(alone) < 2:
        printed = zip(printed_labels(counts).values(), counts.values(), strict=True)
        shown = ", ".join(f"{label} has {rows}" for label, rows in list(printed)[:5])
        return None, f"Folds need two classes of 2 rows at least. Of the rows, {shown}."
    if alone:
        shown = ", ".join(map(repr, alone[:5])) + (", ..." if len(alone) > 5 else "")
        words = f"Class {shown} has 1 row" if len(alone) == 1 else f"Classes {shown} have 1 row each"
        if not rule().shows:
            words = "One class has 1 row" if len(alone) == 1 else f"{len(alone)} classes have 1 row each"
        rare = f"{words}: the model that predicts it has not seen its class, so it counts as wrong."
        sentence = rare if sentence is None else f"{sentence} {rare}"
    is_grouped = source.first_block().group is not None
    return (folds if is_grouped else Folds(folds.n_splits, stratify=True, copies=copies)), sentence


def _folds_for(source: Source, n_splits: int) -> tuple[Folds | None, str | None]:
    if source.first_block().group is not None:
        n_groups = len(source.reduce(GroupSizes.of).keys)
        if n_groups >= n_splits:
            return Folds(n_splits), None
        if n_groups < 2:
            return None, "All rows are of one group, and a group stays in one fold."
        return Folds(n_groups), f"{n_groups} folds instead of {n_splits}: there are only {n_groups} groups."
    n_rows = row_count(source)
    if n_rows >= n_splits:
        return Folds(n_splits), None
    if n_rows < FEWEST_ROWS:
        return None, f"Folds need {FEWEST_ROWS} rows at least. The data has {n_rows}."
    return Folds(n_rows // 2), f"{n_rows // 2} folds instead of {n_splits}: there are only {n_rows} rows."


def _jobs(models: Mapping[str, BaseEstimator], rule: str, preference: Preference) -> list[Job]:
    if not isinstance(models, Mapping) or not models:
        raise TypeError(f"models must be a dict {{name: model}} with at least one model. Got {type(models).__name__}.")
    for taken in (BASELINE, RATE, SHARES):
        if taken in models:
            raise ValueError(f"The name {taken!r} is that of the baseline. Choose another.")
    for preferred in preference.names:
        if preferred not in models:
            raise ValueError(f"prefer={preferred!r} is none of the models: {list(models)}.")
    jobs: list[Job] = []
    for name, model in models.items():
        job = Job(name, model, None, rule)
        if isinstance(model, CrossValidated):
            job = Job(name, model.estimator, model.param_grid, model.rule, model.n_jobs, True)
        if not hasattr(job.estimator, "fit"):
            raise TypeError(f"The model {name!r} must have a method fit. Got {job.estimator!r}.")
        if job.rule not in RULES:
            raise ValueError(f"rule must be one of {', '.join(map(repr, RULES))}. Got {job.rule!r}.")
        if jobs and is_classifier(job.estimator) != is_classifier(jobs[0].estimator):
            names = (name, jobs[0].name) if is_classifier(job.estimator) else (jobs[0].name, name)
            raise TypeError(f"{names[0]!r} is a classifier and {names[1]!r} is none. Compare models of one kind.")
        jobs.append(job)
    return jobs


def _form(estimator: BaseEstimator) -> tuple[object, ...]:
    """What checked rows depend on: models of one form share them, and the statistics made of them."""
    if not learner_of(estimator).is_ours:
        return (id(estimator),)
    params = estimator.get_params()
    encoder = sorted((name, value) for name, value in params.items() if name.startswith("encoder__"))
    return repr(encoder), params.get("encoder") is None, params.get("basis") is None


def _decomposed(tried: Sequence[Tried], rounds: Sequence[Splits], n_points: int) -> Decomposition | None:
    """Bias and variance at n_points candidates of the best model with more, from the sums of its folds."""
    from_sums = [one for one in tried if one.scores.route == "statistics" and len(one.candidates) > n_points > 1]
    for one in sorted(from_sums, key=lambda one: -float(np.nanmax(one.scores.validation.mean(axis=1)))):
        last = len(one.candidates) - 1
        some = [one.candidates[round(k * last / (n_points - 1))] for k in range(n_points)]
        try:
            parts = decompose(one.job.estimator, one.rows, some, rounds[0].cells)
        except ValueError:
            return None  # a draw without rows of positive weight: there are too few
        if parts is not None:
            return parts
    return None


def _are_few(rounds: Sequence[Splits], rows: Rows, candidates: Sequence[Sequence[Candidate]]) -> bool:
    """Whether the row scores of all candidates are few enough to be kept, whatever memory there is."""
    return row_scores_are_few(rounds, row_count(rows.source), sum(map(len, candidates)))


def _evidence(tried: Sequence[Tried], rows: Rows, scoring: Scoring, why_not: str) -> Evidence:
    names = [one.job.name for one in tried]
    choosing = Choosing.of(names, [one.candidates for one in tried], [one.job.rule for one in tried])
    return evidence_of(choosing, scoring, [one.scores for one in tried], rows.source, why_not)


def _nested(tried: Sequence[Tried], evidence: Evidence, rounds: Sequence[Splits], scoring: Scoring) -> Nested:
    """The choice repeated within the training rows of every split."""

    def scored(one: Tried, inner: Sequence[Splits]) -> FoldScores | None:
        how: dict[str, Any] = {"n_jobs": one.job.n_jobs, "label": f"{one.job.name}, nested"}
        try:
            return evaluate(one.job.estimator, one.rows, inner, one.candidates, scoring, **how)
        except NoFit:
            return None

    return nested_choice(evidence, rounds, [partial(scored, one) for one in tried])


def _class_score(jobs: Sequence[Job]) -> str:
    """What classifiers are scored by: the share of right rows where one of them gives no probabilities."""
    return CLASS_SCORE if all(hasattr(job.estimator, "predict_proba") for job in jobs) else "accuracy"


def _error_of(jobs: Sequence[Job]) -> Scoring:
    """The error that all models are scored by, or the root of the mean square where they differ."""
    by_model = {job.name: own_scoring(job.estimator, None) for job in jobs}
    metrics = {score for score in by_model.values() if isinstance(score, Metric)}
    if len(metrics) > 1:
        said = ", ".join(f"{name!r} ({score.name})" for name, score in by_model.items() if isinstance(score, Metric))
        raise ValueError(
            f"Models that predict different things cannot be ranked by one error: {said}. Compare those of one "
            "quantile, or pass scoring=..., which then scores all of them."
        )
    distinct = set(by_model.values())
    return (distinct.pop() if len(distinct) == 1 else None) or RMSE


def _unlike_notes(jobs: Sequence[Job], scoring: Scoring) -> list[str]:
    """That a model is scored by an error which it does not minimise."""
    metrics = {job.name: own_scoring(job.estimator, None) for job in jobs}
    return [
        f"{name} has an error of its own, the {metric.name}; beside other models it is scored by the root mean squared "
        "error, which favours models of the mean."
        for name, metric in metrics.items()
        if isinstance(metric, Metric) and scoring == RMSE
    ]


def _candidates(job: Job, rows: Rows, rounds: Sequence[Splits]) -> Sequence[Candidate]:
    if job.grid is not None:
        from sklearn.model_selection import ParameterGrid

        return list(ParameterGrid(job.grid))
    is_ours = learner_of(job.estimator).is_ours
    candidates = list(job.estimator.fold_candidates(rows.source, rounds, rows.shared)) if is_ours else [{}]
    parameters = job.estimator.get_params()
    # What the user has set is not chosen again, unless asked.
    is_open = job.is_tuned or all(parameters.get(name) is None for candidate in candidates for name in candidate)
    return candidates if is_open else [{}]


def _entry(tried: Tried, rounds: Sequence[Splits], started: float) -> Entry:
    job, rows, candidates, scores = tried.job, tried.rows, tried.candidates, tried.scores
    table = results_table(candidates, scores.validation, scores.train)
    best = choose(table["mean_test_score"], table["standard_error"], candidates, job.rule)
    params = dict(candidates[best])
    model = clone(job.estimator).set_params(**params)
    train = None if scores.train is None else scores.train[best]
    classes = _classes(model, rows, rounds, scores, best) if is_classifier(model) else None
    predicted = scores.predictions(best, row_count(rows.source)) if classes is None else None
    seconds = time.perf_counter() - started
    shown = (scores.route, seconds, table, classes, predicted)
    return Entry(job.name, model, params, scores.validation[best], train, *shown)


def _classes(
    model: BaseEstimator, rows: Rows, rounds: Sequence[Splits], scores: FoldScores, best: int
) -> ClassValidation | None:
    """Every row predicted out of fold; None for a model that gives no probabilities."""
    if not hasattr(model, "predict_proba"):
        return None
    known = None if scores.states is not None else scores.predictions(best, row_count(rows.source))
    if known is not None and known.ndim == 2:  # models that were fitted anew are not fitted again
        return validated_rows(rows, rounds, known)
    return validated(model, rows, rounds, None if scores.states is None else scores.states.of_candidates([best]))


def _shares(rows: Rows, rounds: Sequence[Splits], scoring: Scoring) -> Entry:
    """The shares of the classes among the training rows, for every row."""
    started = time.perf_counter()
    scores, classes = class_shares(rows, rounds, scoring)
    seconds = time.perf_counter() - started
    return Entry(SHARES, None, {}, scores.validation[0], None, scores.route, seconds, classes=classes)


def mean_of_target(rows: Rows, rounds: Sequence[Splits], scoring: Scoring, path: FoldPath | None = None) -> FoldScores:
    """Scores of the training mean. path: of a model with an intercept on the same splits, where there is one."""
    if isinstance(scoring, Metric):
        return evaluate(BestConstant(scoring), rows, rounds, [{}], scoring, label=BASELINE)
    score = sufficient(scoring)
    if path is None and score is not None and rows.X is None and not rows.source.view.has_offset:
        path = mean_path(rows.source, rounds)
    if path is not None and score is not None:
        return path_scores(path, path.train_total[None, :], path.validation_null[None, :], score)
    if rows.source.view.has_offset:
        lean = replace(rows, source=without_columns(rows.source), X=None)
        return evaluate(MeanRate(), lean, rounds, [{}], scoring, label=BASELINE)
    model = MeanOfTarget() if rows.X is None else DummyRegressor()
    return evaluate(model, rows, rounds, [{}], scoring, label=BASELINE)


def _baseline(rows: Rows, rounds: Sequence[Splits], scoring: Scoring, path: FoldPath | None) -> Entry:
    """The mean of the target: from the sums of a model with an intercept where there are some, else from the targets.

    It is named for the target. Where rows have an offset it is the mean for each unit of exposure, exp(offset). A
    metric of a model has the constant that is best by it.
    """
    started = time.perf_counter()
    scores = mean_of_target(rows, rounds, scoring, path)
    seconds = time.perf_counter() - started
    name = RATE if rows.source.view.has_offset else f"mean of {rows.source.target if rows.X is None else 'y'}"
    name = scoring.baseline if isinstance(scoring, Metric) else name
    return Entry(name, None, {}, scores.validation[0], scores.training[0], scores.route, seconds)
