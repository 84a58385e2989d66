"""End to end on real data: houses with 40 categories, flights with 300 levels, messages, loans, pixels of skin."""

import json
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import certifit as cf

HOUSES = ["Gr_Liv_Area", "Neighborhood", "Year_Built", "Overall_Cond", "Garage_Cars", "Mas_Vnr_Type", "Pool_Area"]
FLIGHTS = ["dep_delay", "carrier", "origin", "dest", "distance", "air_time", "month"]


def read(folder):
    context = json.loads(Path(folder, "report.json").read_text())
    errors = {row["name"]: row["error"] for row in context["validation"]["rows"]}
    return context, errors


@pytest.fixture
def houses(shared_data):
    return shared_data / "ames_housing" / "ames_housing.parquet"


@pytest.fixture
def flights(shared_data, tmp_path):
    """Every tenth flight that arrived."""
    table = pq.read_table(shared_data / "nycflights13" / "flights.parquet")
    table = table.filter(pc.is_valid(table["arr_delay"]))
    pq.write_table(table.take(np.arange(0, table.num_rows, 10)), tmp_path / "flights.parquet")
    return tmp_path / "flights.parquet"


def test_prices_of_houses(cli, houses):
    options = ["-t", "Sale_Price", "--columns", ",".join(HOUSES)]
    result = cli("fit", houses, "-o", "fit", *options)
    assert result.exit_code == 0, result.output
    context, errors = read("fit")
    assert errors[context["validation"]["chosen"]] < 0.6 * errors["mean of Sale_Price"]
    assert Path("fit/report.html").stat().st_size < 1_000_000
    result = cli("select", houses, "-o", "select", *options, "--features", "parsimonious")
    assert result.exit_code == 0, result.output
    context, errors = read("select")
    assert {"Gr_Liv_Area", "Neighborhood"} <= set(context["selection"]["features"])
    assert "Pool_Area" not in context["selection"]["features"]
    assert cli("verify", "select/model.certifit", houses).exit_code == 0


def test_delays_of_flights(cli, flights):
    options = ["-t", "arr_delay", "--columns", ",".join(FLIGHTS), "--unseen", "reference"]
    result = cli("fit", flights, "-o", "fit", *options)
    assert result.exit_code == 0, result.output
    _, errors = read("fit")
    assert errors["least squares"] == pytest.approx(15, abs=1) and errors["mean of arr_delay"] > 40
    result = cli("select", flights, "-o", "select", *options, "--direction", "backward", "--group", "day")
    assert result.exit_code == 0, result.output
    context, _ = read("select")
    assert {"dep_delay", "air_time", "distance"} <= set(context["selection"]["features"])
    assert cf.load("select/model.certifit").certificate_.holds


CLASSES = {
    "sms_spam": ("label", "Bernoulli naive Bayes", {"f1": 0.95, "auc": 0.99}),
    "german_credit": ("class", "logistic regression", {"accuracy": 0.74, "auc": 0.77}),
    "skin_segmentation": ("y", "quadratic discriminant", {"accuracy": 0.98, "auc": 0.995}),
}


@pytest.mark.parametrize("name", CLASSES)
def test_classes(cli, shared_data, tmp_path, name):
    target, chosen, least = CLASSES[name]
    rows = pq.read_table(shared_data / name / f"{name}.parquet")
    csv.write_csv(rows.take(list(range(0, len(rows), 1 + len(rows) // 60_000))), tmp_path / "rows.csv")
    result = cli("fit", "rows.csv", "-t", target, "-o", "fit")
    assert result.exit_code == 0, result.output
    context, errors = read("fit")
    assert context["validation"]["chosen"] == chosen and errors[chosen] < 0.9 * errors["class shares"]
    metrics = context["classes"]["metrics"]
    assert {score: metrics[score]["value"] > value for score, value in least.items()} == dict.fromkeys(least, True)
    assert Path("fit/report.html").stat().st_size < 1_000_000
    assert cli("verify", "fit/model.certifit", "rows.csv").exit_code == 0
    assert cli("predict", "fit/model.certifit", "rows.csv", "-o", "p.parquet", "--proba").exit_code == 0
    table, model = pq.read_table("p.parquet"), cf.load("fit/model.certifit")
    proba = np.column_stack(table.columns[1:])
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    assert table["prediction"].to_pylist() == model.classes_[proba.argmax(axis=1)].tolist()
