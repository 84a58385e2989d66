"""The benchmark runner on tiny sizes: valid lines, equal answers, tables with ratios."""

import dataclasses
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
import threadpoolctl

from benchmarks import accuracy, record, reference, rivals, run, table
from benchmarks.problems import PROBLEMS, Data, objective


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Small products on a busy machine are many times slower with two threads than with one."""
    with threadpoolctl.threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[record.Record]:
    """Lines of a quick run of the rivals that every clone has."""
    out: Path = tmp_path_factory.mktemp("benchmarks") / "lines.jsonl"
    problems = ["ols_2e5x20_correlated", "ridge_1e5x300_sparse"]
    names = ["certifit", "numpy", "scipy"]
    options = ["--quick", "--repeats", "2", "--threads", "1", "--out", str(out)]
    run.main([*options, "--problems", *problems, "--rivals", *names])
    return record.read(out)


def test_every_line_obeys_the_schema_and_was_timed_twice(records: list[record.Record]) -> None:
    assert {line["rival"] for line in records} >= {"numpy", "scipy"}
    for line in records:
        assert line["status"] == "ok", line["message"]
        assert line["runs"] == 2
        assert line["wall"] == min(line["walls"]) > 0


def test_all_rivals_solve_the_same_problem(records: list[record.Record]) -> None:
    for line in records:
        assert line["excess"] < 1e-5, (line["problem"]["name"], line["rival"], line["variant"])


def test_table_has_a_row_a_line_and_ratios_to_certifit(records: list[record.Record]) -> None:
    lines = [dict(line) for line in records if line["rival"] in ("numpy", "scipy")]
    for line in lines:  # the table must not depend on certifit being built
        if line["rival"] == "numpy":
            line["rival"] = "certifit"
    text = table.markdown(lines)
    slow = next(line for line in lines if line["rival"] == "scipy")
    rivals_of = [line for line in lines if line["problem"]["name"] == slow["problem"]["name"]]
    ours = min(line["wall"] for line in rivals_of if line["rival"] == "certifit")
    assert f"| {slow['wall'] / ours:.2f} |" in text
    rows = [row for row in text.splitlines() if row.startswith(("| certifit |", "| scipy |"))]
    assert len(rows) == len(lines)


def test_a_line_that_breaks_the_schema_is_refused(records: list[record.Record]) -> None:
    with pytest.raises(ValueError, match="line lacks 'wall'"):
        record.checked({name: value for name, value in records[0].items() if name != "wall"})
    with pytest.raises(ValueError, match=r"line\.threads must be >= 1\. Got 0\."):
        record.checked({**records[0], "threads": 0})
    with pytest.raises(ValueError, match="line has an unknown 'speed'"):
        record.checked({**records[0], "speed": 1})


def test_a_rival_that_is_not_installed_says_so() -> None:
    with pytest.raises(rivals.NotInstalled, match="no-such-package is not installed"):
        rivals.installed("no-such-package")


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_small_step_from_the_reference_lowers_the_objective(name: str) -> None:
    data = PROBLEMS[name].data(quick=True)
    coef, intercept = reference.solve(data)
    best = objective(coef, intercept, data)
    random = np.random.default_rng(0)
    for size in (1e-2, 1e-4, 1e-6):
        step = size * np.abs(coef).max() * random.standard_normal(len(coef))
        assert objective(coef + step, intercept, data) >= best * (1 - 1e-14)
        assert objective(coef, intercept + size, data) >= best * (1 - 1e-14)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_seed_fixes_the_data(name: str) -> None:
    problem = PROBLEMS[name]
    assert problem.data(quick=True).checksum() == problem.data(quick=True).checksum()
    assert problem.about


def test_the_reference_of_integer_data_is_exact() -> None:
    x = np.arange(-5.0, 6.0)
    coef, intercept = reference.solve(Data(np.column_stack([x, x**2]), 3 + 2 * x - 7 * x**2))
    assert (coef.tolist(), intercept) == ([2.0, -7.0], 3.0)


@pytest.mark.parametrize("alpha", [0.0, 0.01])
def test_refinement_and_rational_numbers_agree(alpha: float) -> None:
    data = dataclasses.replace(PROBLEMS["ols_150x4"].data(), alpha=alpha)
    refined, exact = reference.solve_tall(data), reference.solve_exactly(data)
    np.testing.assert_allclose(refined[0], exact[0], rtol=1e-14, atol=1e-15)
    assert refined[1] == pytest.approx(exact[1], rel=1e-14)


def test_inner_threads_limits_the_pools() -> None:
    with threadpoolctl.threadpool_limits(2), rivals.inner_threads(1):
        assert {pool["num_threads"] for pool in threadpoolctl.threadpool_info()} == {1}


def test_correct_digits_counts_from_0_to_15() -> None:
    assert accuracy.correct_digits(1.0, Decimal(1)) == 15
    assert accuracy.correct_digits(1.001, Decimal(1)) == pytest.approx(3, abs=1e-9)
    assert accuracy.correct_digits(-40.0, Decimal(1)) == 0
