"""No cell value that fewer than 5 rows hold is printed by any model, in any file but the model, or on the terminal."""

import csv
import datetime
import json
import re
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from learners import LEARNERS
from sklearn.base import clone

import certifit as cf
from certifit.cli import main
from certifit.cli.models import KINDS
from certifit.data.privacy import FEWEST

N = 120
# In order, the first level is rare: it is the reference.
LEVELS = {"Aardvark-alone": 1, "Birdsong-few": 3, "East": 40, "North": 40, "Quagmire-scarce": 4, "South": 32}
LABELS = {"Omega-rare": 3, "blue": 60, "green": 57}
PLAIN = ["home", "dinner", "later", "mother", "train", "win", "cash", "prize", "free", "urgent"]
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?!\w|\.\d)")


def table():
    """Columns of every kind; cells that few rows hold are odd enough to be no coincidence."""
    rng = np.random.default_rng(5)
    income = (rng.normal(7919.12345, 811.0, N)).round(5)
    city = np.repeat(list(LEVELS), list(LEVELS.values()))[rng.permutation(N)]
    first = datetime.date(2011, 3, 7)
    days = rng.permutation(3 * N)[:N]
    gaps = [""] * N
    gaps[3], gaps[50], gaps[77] = "31.415926", "27.182818", "16.180339"
    score = 0.004 * (income - income.mean()) + (city == "North") + rng.normal(size=N) * 0.3
    label = np.repeat(list(LABELS), list(LABELS.values()))
    texts = [f"{' '.join(rng.choice(PLAIN, 4))} about sentinel{'abcdefghijkl'[k % 12]}{k}" for k in range(N)]
    return {
        "income": income,
        "account": 1_000_003 + 7_919 * rng.permutation(N),
        "customer": [f"ident-{k:03d}-xq" for k in rng.permutation(N)],
        "city": city,
        "opened": [(first + datetime.timedelta(days=int(day))).isoformat() for day in days],
        "gaps": gaps,
        "message": texts,
        "amount": (500 + 90 * score + rng.normal(size=N)).round(5),
        "claims": rng.poisson(np.exp(0.3 * score)),
        "price": np.exp(3 + 0.5 * score + 0.1 * rng.normal(size=N)).round(5),
        "kind": label[np.argsort(np.argsort(score))],
    }


TARGETS = {"quantity": "amount", "counts": "claims", "positive": "price", "classes": "kind"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("privacy")
    cells = table()
    for task, target in TARGETS.items():
        names = [name for name in cells if name == target or name not in TARGETS.values()]
        names.remove("message")
        write(place / f"{task}.csv", {name: cells[name] for name in names})
    write(place / "words.csv", {name: cells[name] for name in ("customer", "city", "message", "kind")})
    return place


def write(path, columns):
    with open(path, "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(columns)
        rows.writerows(zip(*columns.values(), strict=True))


def secrets(path):
    """(texts, numbers) that fewer than 5 rows of a CSV file hold."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    texts, numbers = set(), set()
    for name in rows[0]:
        cells = [word for row in rows for word in (row[name].split() if name == "message" else [row[name]])]
        for text in (text for text, count in Counter(cells).items() if text and count < FEWEST):
            if NUMBER.fullmatch(text):
                numbers |= {float(text)} if has_five_digits(text) else set()
            else:
                texts.add(text)
            if name == "opened":
                numbers.add(
                    float(datetime.date.fromisoformat(text).toordinal() - datetime.date(1970, 1, 1).toordinal())
                )
    return texts, numbers


def has_five_digits(number):
    """Whether a number has so many significant digits that it is no coincidence."""
    return len(re.sub(r"\D", "", number.partition("e")[0]).strip("0")) >= 5


def fit(out, *args):
    """Everything that a fit prints, but for the model file."""
    result = CliRunner().invoke(main, ["fit", *map(str, args), "--out", str(out)])
    assert result.exit_code in (0, 1), result.output
    files = [file for file in sorted(Path(out).rglob("*")) if file.is_file() and file.name != "model.certifit"]
    assert {"report.html", "report.json", "MODEL_CARD.md"} <= {file.name for file in files}
    return {"terminal": result.output} | {file.name: file.read_text(encoding="utf-8") for file in files}


def found_in(printed, path):
    """(file, cell) of every cell of few rows that is printed."""
    texts, numbers = secrets(path)
    found = [(name, text) for name, content in printed.items() for text in texts if text in content]
    for name, content in printed.items():
        tokens = {float(token) for token in NUMBER.findall(content) if has_five_digits(token)}
        found += [(name, number) for number in numbers & tokens]
    return found


# One fit per model, most without folds: what they print is the same table.
ALPHA = {kind: ["--cv", "0", "--alpha", "0.1"] for kind in ("lasso", "elastic-net", "poisson-ridge", "gamma-ridge")}
COMMANDS = [kind.command for kind in KINDS.values()]
CASES = [(one.name, one.goal, ALPHA.get(one.name, ["--cv", "0"])) for one in COMMANDS if not one.reads_counts]
CASES += [(one.name, "words", ["--cv", "0"]) for one in COMMANDS if one.reads_counts]
CASES += [("auto", "quantity", ["--cv", "3", "--min-count", "4"]), ("gaussian-nb", "classes", ["--cv", "3"])]
CASES += [("linear", "quantity", ["--cv", "0", "--columns", "city"]), ("auto", "words", ["--cv", "3"])]
CASES += [("linear", "quantity", ["--cv", "0", "--columns", "income", "--degree", "2"])]
WEIGHTED = ["--cv", "0", "--weight", "account"]  # a sum of weights may be that of one row
CASES += [("linear", "quantity", WEIGHTED), ("gaussian-nb", "classes", WEIGHTED)]
SHRUNK = ("quadratic",)  # a class of 3 rows has no covariance


def arguments(folder, kind, task, options):
    target = TARGETS.get(task, "kind")
    shrunk = ["--shrinkage", "0.5"] if kind in SHRUNK else []
    return [folder / f"{task}.csv", "--target", target, "--model", kind, *options, *shrunk]


@pytest.mark.parametrize("kind, task, options", CASES, ids=lambda one: one if isinstance(one, str) else "".join(one))
def test_no_cell_of_few_rows_is_printed(folder, tmp_path, kind, task, options):
    printed = fit(tmp_path / "out", *arguments(folder, kind, task, options))
    assert found_in(printed, folder / f"{task}.csv") == []
    assert "no cell value that fewer than 5 rows hold" in printed["report.html"]


@pytest.mark.parametrize("kind, task", [("linear", "quantity"), ("gaussian-nb", "classes"), ("bernoulli-nb", "words")])
def test_cells_of_few_rows_come_back_where_they_are_asked_for(folder, tmp_path, kind, task):
    printed = fit(tmp_path / "out", *arguments(folder, kind, task, ["--cv", "0"]), "--show-values")
    found = found_in(printed, folder / f"{task}.csv")
    texts = {cell for _, cell in found if isinstance(cell, str)}
    assert {name for name, _ in found} >= {"report.html", "report.json", "MODEL_CARD.md"}
    assert {"Birdsong-few", "Quagmire-scarce"} <= texts
    assert task == "quantity" or "Omega-rare" in texts
    assert task == "words" or any(isinstance(cell, float) for _, cell in found)
    assert task != "words" or any(text.startswith("sentinel") for text in texts)
    assert "--show-values" in printed["report.html"] and "--show-values" in printed["MODEL_CARD.md"]


@pytest.fixture(scope="module")
def saved(folder):
    """Model files of a quantity and of classes, whose encoder has rare levels."""
    for kind, task in (("linear", "quantity"), ("logistic", "classes")):
        fit(folder / task, *arguments(folder, kind, task, ["--cv", "0"]))
    return folder


def run(*args):
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    assert result.exit_code in (0, 1, 2) and "defect" not in result.output, result.output
    return result


@pytest.mark.parametrize("task", ["quantity", "classes"])
@pytest.mark.parametrize("command", [["inspect"], ["inspect", "--json"], ["verify"]], ids=" ".join)
def test_other_commands_print_no_cell_of_few_rows_either(saved, command, task):
    data = [] if command[0] == "inspect" else [saved / f"{task}.csv"]
    args = [*command, saved / task / "model.certifit", *data]
    assert found_in({"terminal": run(*args).output}, saved / f"{task}.csv") == []
    if command[0] == "inspect":
        sentinel = {"quantity": "Birdsong-few", "classes": "Omega-rare"}[task]
        assert sentinel in run(*args, "--show-values").output


@pytest.mark.parametrize("key", LEARNERS)
def test_the_file_and_the_certificate_of_any_model_print_no_cell(key, tmp_path):
    X, y = LEARNERS[key].rows()
    X = np.abs(X.round(5)) if "counts" in LEARNERS[key].flags else X.round(5)
    y = y.round(5) if y is not None and LEARNERS[key].kind in ("reg", "positive") else y
    model = clone(LEARNERS[key].model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not every model ends proven on these rows
        model.fit(X, y)
    cf.save(model, tmp_path / "model.certifit")
    printed = [run("inspect", tmp_path / "model.certifit", *more).output for more in ([], ["--json"])]
    cells = {float(cell) for part in (X, y) if part is not None and part.dtype.kind == "f" for cell in part.ravel()}
    tokens = {token for text in (*printed, str(model.certificate_)) for token in NUMBER.findall(text)}
    assert not cells & {float(token) for token in tokens if has_five_digits(token)}


def test_a_selection_prints_no_cell_of_few_rows(folder, tmp_path):
    args = [folder / "quantity.csv", "--target", "amount", "--cv", "3", "--columns", "income,city,opened"]
    result = run("select", *args, "--out", tmp_path / "out")
    files = [file for file in (tmp_path / "out").rglob("*") if file.is_file() and file.name != "model.certifit"]
    printed = {file.name: file.read_text(encoding="utf-8") for file in files} | {"terminal": result.output}
    assert "selection.csv" in printed
    assert found_in(printed, folder / "quantity.csv") == []


CELL = "Wrongcell-77.123"
BROKEN = {
    "no number": (["fit", "-t", "amount", "--types", "income=number"], "income", CELL),
    "a skipped row": (["fit", "-t", "amount", "--types", "income=number", "--bad-rows", "1"], "income", CELL),
    "a negative count": (["fit", "-t", "claims", "--task", "counts"], "claims", "-70077.5"),
    "a negative price": (["fit", "-t", "price", "--task", "positive"], "price", "-70077.5"),
    "a negative weight": (["fit", "-t", "amount", "--weight", "gaps"], "gaps", "-70077.5"),
    "no exposure": (["fit", "-t", "claims", "--task", "counts", "--exposure", "income"], "income", "-70077.5"),
    "a target that is no number": (["fit", "-t", "amount", "--task", "quantity"], "amount", CELL),
    "a reference that is not there": (["fit", "-t", "amount", "--reference", "city=Nowhere"], "city", None),
    "two numbers that are classes": (["fit", "-t", "two numbers"], "two numbers", None),
    "a positive that is not there": (["fit", "-t", "two", "--positive", "Nothing"], "two", None),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_message_names_row_and_column_and_shows_the_cell_only_where_it_is_asked_for(tmp_path, case):
    (command, *args), name, wrong = BROKEN[case]
    cells = {key: list(values) for key, values in table().items()} | {"two": ["Onlyone-rare"] * 2 + ["rest"] * (N - 2)}
    cells |= {"gaps": list(range(1, N + 1)), "two numbers": [7_009_117] * 3 + [3] * (N - 3)}
    if wrong is not None:
        cells[name][17] = wrong
    write(tmp_path / "broken.csv", cells)
    args = [command, tmp_path / "broken.csv", *args, "--out", tmp_path / "out", "--cv", "0"]
    hidden = run(*args)
    assert found_in({"terminal": hidden.output}, tmp_path / "broken.csv") == []
    shown = run(*args, "--show-values")
    assert found_in({"terminal": shown.output}, tmp_path / "broken.csv")
    if wrong is not None:
        assert name in hidden.stderr + hidden.stdout and re.search(r"[Ll]ine 19\b", hidden.output)
        assert "--show-values" in " ".join(hidden.output.split())


def test_a_new_level_is_refused_without_its_name(saved, tmp_path):
    rows = (saved / "quantity.csv").read_text().splitlines()
    (tmp_path / "new.csv").write_text("\n".join([rows[0], rows[1].replace(rows[1].split(",")[3], "Brandnew-level")]))
    args = ["predict", saved / "quantity" / "model.certifit", tmp_path / "new.csv"]
    hidden, shown = run(*args), run(*args, "--show-values")
    assert hidden.exit_code == shown.exit_code == 2
    assert "Brandnew" not in hidden.output and "Birdsong" not in hidden.output and "'city'" in hidden.output
    assert "Brandnew" in shown.output and "Birdsong" in shown.output


def test_the_model_is_the_same_whether_values_are_shown(folder, tmp_path):
    args = arguments(folder, "linear", "quantity", ["--cv", "0"])
    for name, more in (("hidden", []), ("shown", ["--show-values"])):
        fit(tmp_path / name, *args, *more)
    hidden, shown = (cf.load(tmp_path / name / "model.certifit") for name in ("hidden", "shown"))
    assert hidden.coef_.tobytes() == shown.coef_.tobytes() and hidden.intercept_ == shown.intercept_
    assert hidden.encoder_.columns_ == shown.encoder_.columns_ and hidden.certificate_ == shown.certificate_
    card = (tmp_path / "hidden" / "MODEL_CARD.md").read_text()
    assert "6 levels of 1 column (city)" in card and "holds no row" in card


def test_rare_levels_are_pooled_and_the_others_keep_their_numbers(folder, tmp_path):
    args = arguments(folder, "linear", "quantity", ["--cv", "0", "--reference", "city=East"])
    tables = {}
    for name, more in (("hidden", []), ("shown", ["--show-values"])):
        printed = fit(tmp_path / name, *args, *more)
        rows = json.loads(printed["report.json"])["coefficients"]["rows"]
        tables[name] = {row["name"]: row["estimate"] for row in rows}
    lost = set(tables["shown"]) - set(tables["hidden"])
    of_three_rows = {"gaps", "gaps missing", "intercept"}  # without the mark, the intercept is that of three rows
    assert lost == {"city=Aardvark-alone", "city=Birdsong-few", "city=Quagmire-scarce"} | of_three_rows
    assert all(tables["shown"][name] == estimate for name, estimate in tables["hidden"].items())
    said = "city: 3 levels held by fewer than 5 rows each: not shown"
    hidden = (tmp_path / "hidden").joinpath
    assert all(said in hidden(name).read_text() for name in ("report.html", "MODEL_CARD.md", "coefficients.csv"))


def test_the_intercept_of_a_rare_reference_is_not_printed(folder, tmp_path):
    """Of a category alone it is the mean target of the reference level: here the target of one row."""
    printed = fit(tmp_path / "out", *arguments(folder, "linear", "quantity", ["--cv", "0", "--columns", "city"]))
    assert "intercept: not shown" in printed["coefficients.csv"]
    assert found_in(printed, folder / "quantity.csv") == []


ALIKE = {
    "true in one row": (["true"], "false", ["--no-intercept"]),
    "false in one row": (["false"], "true", []),
    "1 in one row": ([1], 0, ["--no-intercept"]),
    "0 in one row": ([0], 1, []),
    "no whole number in all rows but one": ([0.0], 0.5, []),
    "a large number in one row": ([1_000_000], 0, ["--no-intercept"]),
    "two odd rows of a square": ([1.5, 2.5], 0.5, ["--degree", "2"]),
    "one odd row of a line": ([0.0], 0.5, ["--degree", "1"]),
    "one day of its own": (["2011-03-07"], "1970-01-01", []),
}


@pytest.mark.parametrize("case", ALIKE)
def test_a_coefficient_that_one_row_decides_is_not_printed(tmp_path, case):
    """Of such a column alone, it or the intercept is the target of that row."""
    odd, usual, options = ALIKE[case]
    amount = np.random.default_rng(2).normal(7000, 811, 40).round(2)
    write(tmp_path / "alike.csv", {"sign": odd + [usual] * (40 - len(odd)), "amount": amount})
    args = [tmp_path / "alike.csv", "-t", "amount", "--model", "linear", "--cv", "0", *options]
    printed = fit(tmp_path / "out", *args)
    assert not [name for name, content in printed.items() if has_number(content, amount[: len(odd)])]
    assert "not shown: fewer than 5 rows decide it" in printed["coefficients.csv"]
    shown = fit(tmp_path / "out", *args, "--show-values")
    assert "not shown" not in shown["coefficients.csv"]
    is_certain = case not in ("a large number in one row", "one day of its own")  # there it is slope times odd cell
    assert not is_certain or any(has_number(content, amount[: len(odd)]) for content in shown.values())


def has_number(content, wanted):
    """Whether a text holds one of these numbers, to seven digits."""
    found = np.array([float(token) for token in NUMBER.findall(content)])
    return bool(np.isclose(found[:, None], wanted, rtol=1e-7, atol=0).any())


def test_the_figures_of_a_polynomial_of_a_rare_reference_are_not_printed(tmp_path):
    rng = np.random.default_rng(2)
    amount = rng.normal(7000, 811, 40).round(2)
    write(tmp_path / "rare.csv", {"city": ["Alone"] + ["Berlin"] * 39, "amount": amount})
    args = [tmp_path / "rare.csv", "-t", "amount", "--model", "linear", "--cv", "0", "--degree", "1"]
    assert not has_number("".join(fit(tmp_path / "out", *args).values()), amount[:1])
    assert has_number("".join(fit(tmp_path / "out", *args, "--show-values").values()), amount[:1])


@pytest.mark.parametrize("command", ["fit", "select"])
def test_a_table_whose_weight_is_in_few_rows_has_no_report(tmp_path, command):
    rng = np.random.default_rng(2)
    cells = {"a": rng.normal(size=40), "b": rng.normal(size=40), "amount": rng.normal(7000, 811, 40).round(5)}
    write(tmp_path / "few.csv", cells | {"weight": [1e9] * 2 + [1.0] * 38})
    args = [command, tmp_path / "few.csv", "-t", "amount", "--task", "quantity", "--weight", "weight"]
    args += ["--out", tmp_path / "out", "--cv", "3"]
    refused = run(*args)
    assert refused.exit_code == 2 and "Fewer than 5 rows have" in " ".join(refused.output.split())
    assert not (tmp_path / "out").exists()
    assert run(*args, "--show-values").exit_code in (0, 1)


HEADLESS = {
    "numbers": ["71.5,3.25,Umbrella-one", "18.25,4.5,Parasol-two"],
    "texts alone": ["Umbrella-one,Berlin", "Parasol-two,Paris"],
    "one text twice": ["Umbrella-one,Umbrella-one", "Parasol-two,Paris"],
}


@pytest.mark.parametrize("case", HEADLESS)
@pytest.mark.parametrize("command", ["fit", "select", "predict"])
def test_the_first_row_of_a_file_without_a_header_is_not_printed(saved, tmp_path, command, case):
    (tmp_path / "rows.csv").write_text("\n".join(HEADLESS[case]) + "\n")
    args = [command, tmp_path / "rows.csv", "--target", "price", "--out", tmp_path / "out"]
    if command == "predict":
        args = [command, saved / "quantity" / "model.certifit", tmp_path / "rows.csv"]
    hidden, shown = run(*args), run(*args, "--show-values")
    assert hidden.exit_code == shown.exit_code == 2
    assert "first line" in " ".join(hidden.output.split())
    assert not any(cell in hidden.output for row in HEADLESS[case] for cell in row.split(","))
    assert "Umbrella-one" in shown.output


def test_names_above_numbers_are_listed(tmp_path):
    (tmp_path / "rows.csv").write_text("size,colour\n3.5,blue\n")
    output = " ".join(run("fit", tmp_path / "rows.csv", "--target", "prize", "--out", tmp_path / "out").output.split())
    assert "Its columns are 'size', 'colour'." in output


@pytest.mark.parametrize("options", [[], ["--weight", "weight"]])
def test_a_constant_target_of_few_rows_is_refused_without_its_value(tmp_path, options):
    amount = [7153.25] * 4 + [1.5] * (36 if options else 0)
    weight = [1.0] * 4 + [0.0] * (len(amount) - 4)
    write(tmp_path / "few.csv", {"a": range(len(amount)), "weight": weight, "amount": amount})
    result = run("fit", tmp_path / "few.csv", "-t", "amount", "--task", "quantity", "-o", tmp_path / "out", *options)
    assert result.exit_code == 2 and "'amount' is one value in every row" in " ".join(result.output.split())
