"""Trees on rows beyond the memory budget, read in passes from files, Dask or an array: the bits of rows in memory."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import certifit as cf
from certifit.data import kept, parts, source
from certifit.models.forest import in_parts as forests
from certifit.models.trees import passes as passes_of_trees
from certifit.models.trees import rows as rows_of_trees
from certifit.runtime import core

N_ROWS, N_COLUMNS = 20_000, 16
LITTLE, LESS = 5.5e6, 3e6  # bytes: too little for 20 per value; LESS has no room for codes either


@pytest.fixture(autouse=True)
def short_stretches(monkeypatch):
    monkeypatch.setattr(source, "stretch_blocks", lambda n_columns: 1)
    monkeypatch.setattr(passes_of_trees, "PART_ROWS", 1 << 14)


def columns() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_COLUMNS))
    X[:, 1], X[:, 2] = X[:, 1].round(1), rng.integers(0, 7, N_ROWS)
    X[::7, 3] = np.nan
    score = X[:, 0] + np.sin(3 * X[:, 1]) + (X[:, 2] == 3)
    number = 100 * score + rng.normal(size=N_ROWS)
    table = {f"x{j}": X[:, j] for j in range(N_COLUMNS)} | {
        "two": (score + rng.normal(size=N_ROWS) > 0).astype(int),
        "three": np.digitize(number, [-50.0, 50.0]),
        "number": number,
        "count": np.floor(np.abs(number)),
        "far": 1e9 + number,
        "w": rng.integers(0, 3, N_ROWS).astype(float),
        "time": rng.random(N_ROWS) + 0.1,
    }
    for values in table.values():  # rows that are equal in everything, stretches apart
        values[N_ROWS // 2 : N_ROWS // 2 + 300] = values[:300]
    return table


TABLE = columns()
NAMES = [f"x{j}" for j in range(N_COLUMNS)]

# model -> (made, its arrays, target, other roles)
MODELS: dict[str, tuple[Any, str, str, dict[str, str]]] = {
    "tree": (lambda: cf.DecisionTreeClassifier(max_bins=255, max_depth=8), "tree_", "two", {}),
    "weighted tree": (
        lambda: cf.DecisionTreeClassifier(max_bins=63, categorical_features=["x2"], max_leaf_nodes=60),
        "tree_",
        "three",
        {"weight": "w"},
    ),
    "regression tree": (
        lambda: cf.DecisionTreeRegressor(max_bins=255, min_samples_leaf=5, categorical_features=["x2"]),
        "tree_",
        "number",
        {"weight": "w"},
    ),
    "tree of shares": (
        lambda: cf.DecisionTreeClassifier(max_bins=255, max_depth=6, criterion="entropy"),
        "tree_",
        "two",
        {"weight": "time"},
    ),
    "forest": (lambda: cf.RandomForestClassifier(4), "forest_", "two", {}),
    "regression forest": (
        lambda: cf.RandomForestRegressor(3, categorical_features=["x2"], max_depth=9),
        "forest_",
        "number",
        {"weight": "w"},
    ),
    "boosting": (lambda: cf.GradientBoostingClassifier(5), "boosting_", "two", {}),
    "boosting of classes": (lambda: cf.GradientBoostingClassifier(3), "boosting_", "three", {"weight": "w"}),
    "boosting of draws": (
        lambda: cf.GradientBoostingRegressor(6, categorical_features=["x2"], subsample=0.5, early_stopping=True),
        "boosting_",
        "number",
        {},
    ),
    "boosting of rates": (
        lambda: cf.GradientBoostingRegressor(4, family="poisson"),
        "boosting_",
        "count",
        {"weight": "w", "exposure": "time"},
    ),
}


def table_of(model: str) -> tuple[pa.Table, dict[str, str]]:
    _, _, target, roles = MODELS[model]
    roles = {"target": target} | roles
    return pa.table({name: TABLE[name] for name in (*NAMES, *roles.values())}), roles


def scan(rows: pa.Table, roles: dict[str, str], folder: Any) -> Any:
    pq.write_table(rows, folder / "rows.parquet", row_group_size=777)
    return cf.scan_parquet(folder / "rows.parquet", **roles)


def dask_frame(rows: pa.Table, roles: dict[str, str], folder: Any) -> Any:
    frames = pytest.importorskip("dask.dataframe")
    frame, cuts = rows.to_pandas(), [0, 7, 9000, N_ROWS]
    parts = [frames.from_pandas(frame.iloc[a:b], npartitions=1) for a, b in pairwise(cuts)]
    return cf.from_dask(frames.concat(parts), **roles)


def arrow(rows: pa.Table, roles: dict[str, str], folder: Any) -> Any:
    return cf.from_arrow(rows, **roles)


def bits(model: Any, name: str) -> dict[str, Any]:
    parts = vars(getattr(model, name)).items()
    return {key: part.tobytes() for key, part in parts if isinstance(part, np.ndarray)}


@pytest.fixture
def passes(monkeypatch):
    """Fits that read their rows in passes."""
    begun = []
    init = passes_of_trees.PassedRows.__init__
    monkeypatch.setattr(
        passes_of_trees.PassedRows, "__init__", lambda self, *args: begun.append(1) or init(self, *args)
    )
    return begun


@pytest.mark.parametrize("model", MODELS)
def test_rows_beyond_memory_give_the_bits_and_the_certificate_of_rows_in_memory(model, tmp_path, passes):
    make, name, _, _ = MODELS[model]
    rows, roles = table_of(model)
    whole = make().fit(cf.from_arrow(rows, **roles))
    assert whole.certificate_.holds and not passes
    with cf.memory(LITTLE):
        apart = make().fit(scan(rows, roles, tmp_path))
        assert bits(apart, name) == bits(whole, name)
        assert apart.certificate_ == whole.certificate_
        assert apart.data_ == whole.data_
        assert apart.certify(cf.scan_parquet(tmp_path / "rows.parquet", **roles)) == whole.certificate_
    assert len(passes) >= 2  # a fit and a certificate


@pytest.mark.parametrize("place", [dask_frame, arrow])
@pytest.mark.parametrize("model", ["regression tree", "forest", "boosting"])
def test_any_engine_gives_the_bits_of_memory(model, place, tmp_path, passes):
    make, name, _, _ = MODELS[model]
    rows, roles = table_of(model)
    whole = make().fit(cf.from_arrow(rows, **roles))
    with cf.memory(LITTLE):
        apart = make().fit(place(rows, roles, tmp_path))
    assert passes
    assert bits(apart, name) == bits(whole, name)
    assert apart.certificate_ == whole.certificate_


def test_rows_without_room_in_memory_are_in_temporary_files_that_have_no_name(tmp_path, monkeypatch, passes):
    rows, roles = table_of("boosting")
    whole = MODELS["boosting"][0]().fit(cf.from_arrow(rows, **roles))
    tables = []
    init = parts.RowTable.__init__

    def counted(self: Any, n_rows: int, like: Any, in_memory: bool) -> None:
        tables.append(in_memory)
        init(self, n_rows, like, in_memory)

    monkeypatch.setattr(parts.RowTable, "__init__", counted)
    monkeypatch.setattr(kept.tempfile, "tempdir", str(tmp_path / "spill"))
    (tmp_path / "spill").mkdir()
    with cf.memory(LESS):
        apart = MODELS["boosting"][0]().fit(scan(rows, roles, tmp_path))
    assert tables and not any(tables)
    assert not list((tmp_path / "spill").iterdir())
    assert bits(apart, "boosting_") == bits(whole, "boosting_")


def test_a_disk_without_room_is_said(tmp_path, monkeypatch):
    rows, roles = table_of("boosting")
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr(parts.shutil, "disk_usage", lambda folder: usage)
    with cf.memory(LESS), pytest.raises(MemoryError, match=r"temporary file of .* GB could not be made .*TMPDIR names"):
        MODELS["boosting"][0]().fit(scan(rows, roles, tmp_path))


def test_no_temporary_file_is_made_where_none_is_allowed(tmp_path):
    rows, roles = table_of("boosting")
    with cf.memory(LESS), pytest.raises(MemoryError, match="--no-spill forbids it"):
        MODELS["boosting"][0]().fit(scan(rows, roles, tmp_path).kept(may_spill=False))


@pytest.mark.parametrize("model", ["two", "three"])
@pytest.mark.parametrize(
    "made",
    [
        lambda: cf.DecisionTreeClassifier(max_bins=255),
        lambda: cf.DecisionTreeClassifier(max_bins=31, categorical_features=["x2"], min_samples_leaf=40),
        lambda: cf.DecisionTreeClassifier(max_bins=255, criterion="entropy", max_depth=5, categorical_features=["x2"]),
        lambda: cf.DecisionTreeClassifier(max_bins=255, min_impurity_decrease=1e-4, ccp_alpha=1e-4, max_depth=9),
    ],
)
def test_every_way_to_grow_a_tree_of_classes_gives_the_bits_of_memory(made, model, tmp_path, passes):
    names = {"target": model, "weight": "w"} if model == "three" else {"target": model}
    rows = pa.table({name: TABLE[name] for name in (*NAMES, *names.values())})
    whole = made().fit(cf.from_arrow(rows, **names))
    for limit in (LITTLE, LESS):  # LESS: more of the tree is grown on histograms
        with cf.memory(limit):
            apart = made().fit(scan(rows, names, tmp_path))
        assert bits(apart, "tree_") == bits(whole, "tree_")
        assert apart.certificate_ == whole.certificate_ and whole.certificate_.holds
    assert passes


@pytest.mark.parametrize("weight", [None, "w", "time"])
@pytest.mark.parametrize(
    ("made", "target"),
    [
        (lambda: cf.DecisionTreeRegressor(max_bins=255), "number"),
        (lambda: cf.DecisionTreeRegressor(max_bins=63, max_depth=6, monotonic_cst={"x0": 1, "x1": -1}), "number"),
        (lambda: cf.DecisionTreeRegressor(max_bins=255, max_depth=7, categorical_features=["x2"]), "far"),
        (lambda: cf.DecisionTreeRegressor(max_bins=255, criterion="poisson", min_samples_leaf=20), "count"),
        (lambda: cf.DecisionTreeClassifier(max_bins=255, min_samples_leaf=9), "two"),
        (lambda: cf.DecisionTreeClassifier(max_bins=31, max_depth=6, monotonic_cst={"x0": 1}), "two"),
        (lambda: cf.DecisionTreeClassifier(max_bins=255, criterion="entropy", categorical_features=["x2"]), "three"),
    ],
)
def test_every_tree_on_bins_is_grown_from_parts_with_the_bits_of_memory(made, target, weight, tmp_path):
    roles = {"target": target} | ({} if weight is None else {"weight": weight})
    rows = pa.table({name: TABLE[name] for name in (*NAMES, *roles.values())})
    whole = made().fit(cf.from_arrow(rows, **roles))
    for limit in (LITTLE, LESS):  # LESS: more of the tree is grown on histograms
        with cf.memory(limit):
            apart = made().fit(scan(rows, roles, tmp_path))
        assert bits(apart, "tree_") == bits(whole, "tree_")
        assert apart.certificate_ == whole.certificate_ and whole.certificate_.holds
        assert apart.data_ == whole.data_


@pytest.mark.parametrize(
    "made",
    [
        lambda: cf.GradientBoostingRegressor(3, family="huber", max_features=0.4, subsample=0.7),
        lambda: cf.GradientBoostingRegressor(2, family="quantile", quantile=0.8, max_leaf_nodes=9),
        lambda: cf.GradientBoostingRegressor(3, growth="depth", max_depth=4, monotonic_cst={"x0": 1, "x2": -1}, l2=2.0),
        lambda: cf.GradientBoostingRegressor(2, max_leaf_nodes=None, min_samples_leaf=150, max_features=0.5),
        # leaves of few rows: in memory they are searched by these, in passes by histograms
        lambda: cf.GradientBoostingRegressor(1, max_leaf_nodes=200, min_samples_leaf=3, categorical_features=["x2"]),
        lambda: cf.GradientBoostingRegressor(1, max_leaf_nodes=200, min_samples_leaf=3, monotonic_cst={"x0": 1}),
    ],
)
def test_every_way_to_grow_gives_the_bits_of_memory(made, tmp_path, passes):
    rows, roles = table_of("boosting of draws")
    whole = made().fit(cf.from_arrow(rows, **roles))
    with cf.memory(LITTLE):
        apart = made().fit(scan(rows, roles, tmp_path))
    assert passes and bits(apart, "boosting_") == bits(whole, "boosting_")
    assert apart.certificate_ == whole.certificate_ and whole.certificate_.holds


def test_a_warm_start_goes_on_from_rows_in_passes(tmp_path, passes):
    rows, roles = table_of("boosting")
    whole = cf.GradientBoostingClassifier(4).fit(cf.from_arrow(rows, **roles))
    apart = cf.GradientBoostingClassifier(2, warm_start=True)
    with cf.memory(LITTLE):
        apart.fit(scan(rows, roles, tmp_path))
        apart.set_params(n_estimators=4).fit(cf.scan_parquet(tmp_path / "rows.parquet", **roles))
    assert np.allclose(apart.boosting_.value, whole.boosting_.value, rtol=1e-9, atol=0)
    assert apart.certificate_.holds


@pytest.mark.parametrize("model", ["tree", "forest", "boosting"])
def test_a_changed_model_is_not_certified(model, tmp_path, passes):
    make, name, _, _ = MODELS[model]
    rows, roles = table_of(model)
    with cf.memory(LITTLE):
        fitted = make().fit(scan(rows, roles, tmp_path))
        state = getattr(fitted, name)
        node = int(np.flatnonzero(state.left > 0)[0])
        threshold = state.threshold.copy()
        threshold[node] += 0.5
        setattr(fitted, name, replace(state, threshold=threshold))
        assert not fitted.certify(cf.scan_parquet(tmp_path / "rows.parquet", **roles)).holds


def test_a_tree_that_tries_all_thresholds_is_refused_with_the_way_out(tmp_path):
    rows, roles = table_of("tree")
    with cf.memory(1e6), pytest.raises(MemoryError, match="max_bins=255 reads rows in passes"):
        cf.DecisionTreeClassifier().fit(scan(rows, roles, tmp_path))


@pytest.mark.parametrize(
    ("made", "target", "weight"),
    [
        (lambda: cf.RandomForestClassifier(2, max_depth=9), "two", "time"),
        (lambda: cf.RandomForestClassifier(2, categorical_features=["x2"], max_features=1.0, max_depth=2), "two", "w"),
        (lambda: cf.RandomForestClassifier(1, categorical_features=["x2"], min_samples_leaf=9), "three", "w"),
        (lambda: cf.RandomForestRegressor(1, max_features=0.3, max_depth=9), "number", "time"),
        (lambda: cf.RandomForestRegressor(2, categorical_features=["x2"], max_depth=3, random_state=8), "far", None),
    ],
)
def test_every_forest_is_grown_from_parts_with_the_bits_of_memory(made, target, weight, tmp_path, monkeypatch):
    roles = {"target": target} | ({} if weight is None else {"weight": weight})
    rows = pa.table({name: TABLE[name] for name in (*NAMES, *roles.values())})
    whole = made().fit(cf.from_arrow(rows, **roles))
    assert whole.certificate_.holds
    monkeypatch.setattr(forests, "LEAST_ROWS", 1000)
    for limit in (LITTLE, 1e6):  # the least: more of the trees is grown on histograms, one tree at a time
        with cf.memory(limit):
            apart = made().fit(scan(rows, roles, tmp_path))
        assert bits(apart, "forest_") == bits(whole, "forest_")
        assert apart.certificate_ == whole.certificate_
        assert apart.data_ == whole.data_


def test_the_row_of_an_infinite_value_is_named(passes):
    X = np.column_stack([TABLE[name] for name in NAMES])
    X[17_001, 5] = np.inf
    with cf.memory(LITTLE), pytest.raises(ValueError, match=r"infinity: row 17001, column 'x5'"):
        cf.GradientBoostingClassifier(2).fit(X, TABLE["two"])
    assert passes


def test_the_best_tree_is_not_searched_among_rows_in_passes(tmp_path):
    rows, roles = table_of("tree")
    with cf.memory(LITTLE):
        model = cf.DecisionTreeClassifier(max_bins=255, max_depth=2).fit(scan(rows, roles, tmp_path))
        with pytest.raises(MemoryError, match="needs all rows in memory"):
            model.certify(cf.scan_parquet(tmp_path / "rows.parquet", **roles), against="optimal")


def test_ranks_say_what_thresholds_ask(rng):
    x = rng.normal(size=400).round(1)
    threshold = np.array([0.3, -0.7, np.inf, 0.3, 5.0])
    feature = np.array([0, 0, 0, 0, 1])
    ranked = rows_of_trees.ranked_thresholds(feature, threshold, np.array([True] * 5), 2)
    assert ranked is not None
    ranks = core.bin_rows(source.Block(np.column_stack([x, x]), None, None).rows, ranked.edges, None, 1)
    for node in range(5):
        assert ((x <= threshold[node]) == (ranks[:, feature[node]] <= ranked.threshold[node])).all()
    many = np.linspace(0, 1, 300)
    assert rows_of_trees.ranked_thresholds(np.zeros(300, int), many, np.ones(300, bool), 1) is None
