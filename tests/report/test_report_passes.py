import numpy as np
import pytest

import certifit as cf
from certifit.data.source import Batches, Block, Memory
from certifit.report import passes
from certifit.report.columns import Moments
from certifit.report.passes import Sketch


def filled(values, weight=None):
    sketch = Sketch()
    sketch.add(np.asarray(values, dtype=float), weight)
    return sketch


@pytest.mark.parametrize("law", ["normal", "cauchy", "tiny", "huge", "integers"])
def test_quantiles_are_right_to_half_a_per_cent(law):
    rng = np.random.default_rng(0)
    values = {
        "normal": rng.normal(3, 1, 5001),
        "cauchy": rng.standard_cauchy(5001),
        "tiny": rng.normal(size=5001) * 1e-300,
        "huge": rng.normal(size=5001) * 1e300,
        "integers": rng.integers(-20, 20, 5001).astype(float),
    }[law]
    levels = np.array([0, 0.01, 0.25, 0.5, 0.75, 0.99, 1])
    exact = np.quantile(values, levels, method="inverted_cdf")
    assert filled(values).quantile(levels) == pytest.approx(exact, rel=0.005)


def test_the_order_and_size_of_blocks_do_not_matter_to_a_sketch():
    values = np.random.default_rng(1).normal(size=1000)
    whole, parts = filled(values), Sketch()
    for part in np.split(values[::-1], 8):
        parts.add(part)
    assert (whole.bins == parts.bins).all() and (whole.mass == parts.mass).all()


def test_weight_two_is_the_row_twice_and_weight_zero_is_no_row():
    values = np.array([-3.0, 0.0, 2.0, 1e9])
    weighted = filled(values, np.array([2.0, 1.0, 1.0, 0.0]))
    repeated = filled([-3.0, -3.0, 0.0, 2.0])
    assert (weighted.bins == repeated.bins).all() and (weighted.mass == repeated.mass).all()
    assert weighted.high == 2.0


def test_a_window_shows_all_values_unless_a_few_lie_far_out():
    values = np.random.default_rng(2).normal(size=2000)
    assert filled(values).window() == (values.min(), values.max())
    low, high = filled([*values, 1e6]).window()
    assert -10 < low < high < 10
    low, high = filled([7.0, 7.0]).window()
    assert low < 7 < high


def problem(n_rows=3000, weight=None):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n_rows, 3)) * [1, 10, 100]
    y = X @ [3.0, 0.2, 0.01] + rng.normal(size=n_rows)
    source = Memory(X, y, weight, names=["a", "b", "c"])
    return source, cf.LinearRegression().fit(source)


def both(model, source):
    seen = passes.survey(model, source, 1.0, 0.0)
    return seen, passes.shapes(model, source, seen)


def test_every_row_is_counted_in_every_picture():
    source, model = problem()
    _, shapes = both(model, source)
    for grid in (shapes.fit, shapes.spread):
        assert grid.counts.sum() + grid.outside == 3000
    assert shapes.bands.counts.sum() == 3000
    assert shapes.histogram.sum() == pytest.approx(3000, abs=30)


def test_blocks_of_a_stream_give_the_same_counts_as_memory():
    source, model = problem()
    block = next(source.stretches())
    parts = [block.part(k, k + 700) for k in range(0, 3000, 700)]

    class Stream(Batches):
        def stretches(self):
            yield from parts

    stream = Stream(lambda: parts, source.names)
    (seen, shapes), (seen_2, shapes_2) = both(model, source), both(model, stream)
    assert (shapes.fit.counts == shapes_2.fit.counts).all()
    assert (shapes.bands.counts == shapes_2.bands.counts).all()
    assert seen_2.columns.mean == pytest.approx(seen.columns.mean)
    assert seen_2.columns.sd == pytest.approx(seen.columns.sd, rel=1e-12)
    assert seen_2.squares == pytest.approx(seen.squares, rel=1e-12)


def test_column_moments_are_those_of_numpy_dense_and_sparse():
    import scipy.sparse

    X = np.random.default_rng(4).normal(50, 2, size=(400, 4)) * (np.arange(400)[:, None] % 3 > 0)
    weight = np.random.default_rng(5).uniform(0, 2, 400)
    y = X @ [1.0, 0.0, -1.0, 2.0] + np.random.default_rng(6).normal(size=400)
    mean = np.average(X, axis=0, weights=weight)
    sd = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    for rows in (X, scipy.sparse.csr_array(X)):
        columns = Moments()
        columns.add(rows[:150], y[:150], weight[:150])
        columns.add(rows[150:], y[150:], weight[150:])
        assert columns.mean == pytest.approx(mean, rel=1e-12)
        assert columns.sd == pytest.approx(sd, rel=1e-9)
        assert (columns.low == X.min(axis=0)).all() and (columns.high == X.max(axis=0)).all()
        both = np.cov(X[:, 2], y, aweights=weight, ddof=0)
        assert columns.correlation([2]) == pytest.approx(both[0, 1] ** 2 / (both[0, 0] * both[1, 1]), rel=1e-9)


def test_running_quantiles_are_those_of_the_rows_in_each_bin():
    source, model = problem()
    _, shapes = both(model, source)
    block = next(source.stretches())
    prediction = model.predict(source)
    residual = block.y - prediction
    place = np.searchsorted(shapes.bands.cuts, prediction, side="right")
    found = shapes.bands.to_dict()
    for k, (x, quantiles) in enumerate(zip(found["x"], found["quantiles"], strict=True)):
        assert x == pytest.approx(prediction[place == k].mean())
        exact = np.quantile(residual[place == k], passes.BAND_LEVELS, method="inverted_cdf")
        assert quantiles == pytest.approx(exact, abs=0.02)


def test_a_source_without_a_target_is_refused():
    source, model = problem(50)
    bare = Memory(next(source.stretches()).X, None, names=source.names)
    with pytest.raises(ValueError, match="needs the target"):
        passes.survey(model, bare, 1.0, 0.0)


def test_empty_blocks_are_skipped():
    source, model = problem(50)
    block = next(source.stretches())

    class Gappy(Batches):
        def stretches(self):
            yield Block(block.X[:0], block.y[:0], None)
            yield block

    assert passes.survey(model, Gappy(list, source.names), 1.0, 0.0).n_rows == 50


def test_a_model_that_holds_its_rows_predicts_them_once(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    source = Memory(X, X[:, 0] + rng.normal(size=60))
    model = cf.LocallyWeightedRegression(tau=1.0).fit(source)
    seen = passes.survey(model, source, 1.0, 0.0)
    monkeypatch.setattr(passes, "predict_block", lambda *_: pytest.fail("predicted again"))
    assert passes.shapes(model, source, seen).histogram.sum() == 60
    other = cf.LinearRegression().fit(source)
    monkeypatch.undo()
    assert passes.survey(other, source, 1.0, 0.0).predictions is None
