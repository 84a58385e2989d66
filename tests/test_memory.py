"""What needs more memory than allowed is refused before it begins, with the number and the way out."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import certifit as cf
from certifit import runtime

WAY_OUT = r"needs [\d.e+]+ \wB of memory, limit [\d.]+ \wB\. .*certifit\.memory\("


def test_the_budget_is_a_setting_and_a_quarter_of_what_there_is():
    before = runtime.memory_limit()
    assert 0 < before == runtime.memory_limit()
    with cf.memory(3e9):
        assert runtime.memory_limit() == 3_000_000_000
        with cf.memory(10):
            assert runtime.memory_limit() == 10
    assert runtime.memory_limit() == before


@pytest.mark.parametrize(
    ("row", "limits", "smallest"),
    [
        ("0::/system.slice/a.service/b", {"memory.max": "max", "system.slice/a.service/memory.max": "3000"}, 3000),
        ("0::/a/b", {"memory.max": "900", "a/memory.max": "700", "a/b/memory.max": "800"}, 700),
        ("4:memory:/slurm/job", {"memory/memory.limit_in_bytes": "9000", "memory/slurm/memory.limit_in_bytes": "8"}, 8),
        ("5:cpu,memory:/job", {"memory/job/memory.limit_in_bytes": "70"}, 70),
        ("3:cpu:/job\n0::/", {"memory/job/memory.limit_in_bytes": "70", "memory.max": "max"}, 0),
        ("0::/../../elsewhere", {"memory.max": "60"}, 60),
    ],
)
def test_the_smallest_limit_of_a_group_and_its_parents_counts(row, limits, smallest, tmp_path):
    """Only that of the root was read: none of systemd-run, of Slurm, of a container that sees the host's groups."""
    for name, limit in limits.items():
        (tmp_path / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "root" / name).write_text(f"{limit}\n")
    (tmp_path / "cgroup").write_text(f"{row}\n")
    assert runtime._cgroup_memory(str(tmp_path / "root"), str(tmp_path / "cgroup")) == smallest


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), True, "8GB", None])
def test_a_budget_is_a_number_of_bytes(wrong):
    with pytest.raises(ValueError, match="memory must be a number of bytes"), cf.memory(wrong):
        pass


def test_the_limit_of_the_process_counts(monkeypatch):
    runtime._quarter_of_memory.cache_clear()
    monkeypatch.setattr(runtime, "_address_space", lambda: 4000)
    assert runtime.memory_limit() == 1000
    runtime._quarter_of_memory.cache_clear()


def test_a_number_that_is_needed_is_a_number_that_is_enough():
    with cf.memory(1e6), pytest.raises(MemoryError, match=r"needs 31 GB of memory, limit 1 MB\. Use less\."):
        runtime.check_memory(31e9, "This", "Use less.")
    with cf.memory(3.3e10):
        runtime.check_memory(31e9, "This", "Use less.")


def test_an_svmlight_file_of_31_bytes_with_a_huge_index(tmp_path):
    path = tmp_path / "bomb.svm"
    path.write_text("1 1:0.5 2000000000:1\n0 1:0.25\n")
    with cf.memory(4e9), pytest.raises(MemoryError, match="2,000,000,000 columns.*" + WAY_OUT):
        cf.scan_svmlight(path)


@pytest.mark.parametrize("n_hash", [None, 16])
def test_terms_of_very_many_words(n_hash):
    texts = ["ab cd " * 30_000]
    with cf.memory(4e9), pytest.raises(MemoryError, match="Terms of up to 60,000 words.*" + WAY_OUT):
        cf.TextBinarizer(ngram_range=(1, 60_000), n_hash=n_hash).fit(texts)
    few = cf.TextBinarizer(ngram_range=(1, 60_000), n_hash=n_hash).fit(["one two three", "two three"])
    assert few.n_texts_ == 2


SPARSE = sp.csr_array((np.ones(4), (np.arange(4), [0, 10, 20, 49_999])), shape=(4, 50_000))
TALL = sp.vstack([SPARSE] * 20_000, format="csr")
MANY = np.arange(20_000)


@pytest.mark.parametrize(
    ("model", "X", "y", "what"),
    [
        (
            cf.LinearRegression(),
            TALL,
            np.zeros(80_000),
            "50,000 x 50,000 columns",
        ),
        (cf.MultinomialNB(), TALL[:20_000], MANY // 2, "10,000 classes x 50,000 columns"),
        (cf.GaussianNB(), TALL[:20_000], MANY // 2, "10,000 classes x 50,000 columns"),
        (cf.LogisticRegression(), MANY[:, None] / 1e4, MANY, "20,000 classes on 1 columns"),
    ],
    ids=["gram", "counts", "moments", "softmax"],
)
def test_squares_and_tables_of_classes_are_refused_before_they_are_made(model, X, y, what):
    with cf.memory(2e9), pytest.raises(MemoryError, match=what + ".*" + WAY_OUT):
        model.fit(X, y)


def test_the_budget_never_changes_bits():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)), rng.normal(size=200)
    with cf.memory(1e6):
        small = cf.Ridge(0.1).fit(X, y).coef_
    with cf.memory(1e12):
        assert (cf.Ridge(0.1).fit(X, y).coef_ == small).all()


@pytest.mark.slow
def test_a_header_of_many_columns_is_read_in_linear_time(tmp_path):
    path = tmp_path / "wide.csv"
    names = [f"c{j}" for j in range(20_000)]
    path.write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    source = cf.scan_csv(path, target="c0")
    assert source.n_features == 19_999


def test_the_limit_of_work_is_a_setting():
    before = runtime.work_limit()
    with cf.work(100):
        assert runtime.work_limit() == 100
    assert runtime.work_limit() == before == 8


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), True, "1h", None])
def test_work_is_a_number_of_hours(wrong):
    with pytest.raises(ValueError, match="work must be a number of hours > 0"), cf.work(wrong):
        pass


def test_hours_that_are_needed_are_hours_that_are_enough():
    with (
        cf.work(1),
        pytest.raises(ValueError, match=r"about 10 hours of one processor core, limit 1 hours\. Use less\."),
    ):
        runtime.check_work(36_000, "This", "Use less.")
    with cf.work(10.5):
        runtime.check_work(36_000, "This", "Use less.")


@pytest.mark.parametrize(
    ("model", "what"),
    [(cf.SVC(), r"3 classes \(3 machines\)"), (cf.MLPClassifier(max_iter=2), "2 epochs of a network")],
)
def test_classes_by_the_thousand_say_what_they_will_cost(model, what, monkeypatch, rng):
    """A machine of every two of 1,500 classes took ten minutes in silence, a network of 100,000 hours."""
    monkeypatch.setattr(runtime, "LONG", 0.0)
    with pytest.warns(UserWarning, match=f"{what}.* expected to take some 0 s of one processor core, or less. Use"):
        model.fit(rng.normal(size=(30, 2)), np.arange(30) % 3)


@pytest.mark.parametrize(
    ("n_classes", "n_rows"),
    [(10_000, 400_000), (100_000, 100_000)],
)
def test_softmax_of_very_many_labels_is_refused_before_it_begins(n_classes, n_rows):
    y = np.arange(n_rows) % n_classes
    refusal = rf"{n_classes:,} classes on 1 columns and {n_rows:,} rows is expected to take about [\d,]+ hours.*work"
    with cf.memory(1e13), pytest.raises(ValueError, match=refusal):
        cf.LogisticRegression().fit(y[:, None] / 1e4, y)


@pytest.mark.parametrize(
    "model",
    [
        cf.GaussianDiscriminant(),
        cf.SVC(),
        cf.SVC(multi_class="one-vs-rest"),
        cf.LinearSVC(),
        cf.AdaBoostClassifier(),
        cf.RandomForestClassifier(),
        cf.GradientBoostingClassifier(),
    ],
    ids=repr,
)
def test_very_many_labels_are_refused_before_arrays_of_rows_and_classes_are_made(model):
    y = np.arange(2000) % 1000
    with cf.memory(5e6), pytest.raises(MemoryError, match=r"of 1,000 classes.* needs .*is the target a number"):
        model.fit(y[:, None] / 7, y)


def test_a_network_of_very_many_labels_is_refused_before_it_begins():
    y = np.arange(2000) % 1000
    with (
        cf.work(1e-3),
        pytest.raises(ValueError, match=r"weights on 2,000 rows is expected to take .* fewer units"),
    ):
        cf.MLPClassifier().fit(y[:, None] / 7, y)


def test_a_fit_of_a_second_is_refused_where_less_is_allowed():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), np.arange(400) % 40
    with cf.work(1e-6), pytest.raises(ValueError, match=r"40 classes on 3 columns and 400 rows.*fewer classes"):
        cf.LogisticRegression().fit(X, y)
    assert cf.LogisticRegression().fit(X, y).certificate_.holds


def test_a_matrix_that_nobody_waits_for_is_refused():
    wide = sp.csr_array((np.ones(4), (np.arange(4), [0, 10, 20, 99_999])), shape=(4, 100_000))
    tall = sp.vstack([wide] * 30_000, format="csr")
    with cf.memory(1e13), pytest.raises(ValueError, match="100,000 x 100,000 columns is expected to take about"):
        cf.LinearRegression().fit(tall, np.zeros(120_000))
