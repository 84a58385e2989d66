import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import certifit as cf
from certifit.models.lasso.model import Lasso


def test_it_shows_the_fit_its_columns_its_certificate_and_digests(cli, saved):
    result = cli("inspect", saved / "model.certifit")
    assert result.exit_code == 0, result.output
    text = result.stdout
    size = (saved / "model.certifit").stat().st_size
    assert f"LinearRegression, {size:,} bytes, format 1, written by certifit {cf.__version__}" in text
    for word in ("y, mean", "sum_i weight_i", "tol 1e-8", "2: a and b", "2 coefficients, intercept", "120 rows"):
        assert word in text
    assert "Converged: the objective is proven" in text
    assert text.count("Converged") == 1 and "sha256" in text
    assert text.splitlines()[-1].startswith("Read, not verified. To verify it: certifit verify")


def test_json_is_one_object_with_everything(cli, saved):
    result = cli("inspect", saved / "model.certifit", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found.keys() == {
        "file", "model", "target", "features", "encoder", "coefficients", "classes", "components",
        "certificate", "data", "estimators",
    }  # fmt: skip
    assert found["features"]["names"] == ["a", "b"] and found["data"]["n_rows"] == 120
    assert found["certificate"]["is_verified"] is False


def test_a_lasso_shows_alpha_and_what_is_zero(cli):
    X = [[1.0, 0.0, 3.0], [2.0, 1.0, 1.0], [3.0, 0.0, 2.0], [4.0, 1.0, 5.0]]
    model = Lasso(alpha=0.5, bounds={"x0": "increasing"}, penalty_factors=[1, 2, 2]).fit(X, [2.0, 4.0, 6.0, 8.0])
    cf.save(model, "m.certifit")
    text = " ".join(cli("inspect", "m.certifit").stdout.split())
    assert "m.certifit: Lasso" in text and "alpha 0.5" in text and "1 of 3 not zero" in text
    assert "factors of 2 columns" in text and "bounds on 1 column" in text
    assert "3, without names" in text


def test_a_huber_regression_shows_its_loss_and_the_scale_of_its_residuals(cli):
    X = [[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]]
    model = cf.HuberRegressor(1.5, scale="mad").fit(X, [2.1, 3.9, 6.2, 7.8, 10.1, 60.0])
    cf.save(model, "m.certifit")
    text = " ".join(cli("inspect", "m.certifit").stdout.split())
    assert "m.certifit: HuberRegressor" in text and "delta 1.5" in text and "scale mad" in text
    assert "h(z) = z^2/2 if |z| <= 1.5 else 1.5 |z| - 1.125" in text
    assert f"residuals scale {model.scale_:.4g}" in text
    found = json.loads(cli("inspect", "m.certifit", "--json").stdout)
    assert found["model"]["scale"] == model.scale_ and found["model"]["objective"] == model.objective


def test_weights_are_told_by_the_names_of_their_columns(cli):
    X = np.eye(12, 10)
    cf.save(cf.Ridge(0.1).fit(X, np.arange(12.0)), "m.certifit")
    text = " ".join(cli("inspect", "m.certifit").stdout.split())
    assert "; x7 " in text and "; and 2 more" in text and "x8" not in text
    found = json.loads(cli("inspect", "m.certifit", "--json").stdout)["coefficients"]
    assert found["names"] == [f"x{j}" for j in range(10)] and len(found["values"]) == 10


def test_a_table_shows_what_was_noted_about_its_columns(cli):
    rows = [f"{'red' if i % 3 else 'blue'},{'' if i % 7 == 0 else i},{i * 0.5 + i % 3},1" for i in range(40)]
    Path("t.csv").write_text("\n".join(["colour,size,y,same", *rows]))
    assert cli("fit", "t.csv", "-t", "y", "-o", "out").exit_code == 0
    text = cli("inspect", "out/model.certifit").stdout
    assert "to note" in text and "'size' is missing in 6 of 40 rows" in " ".join(text.split())
    assert "'same' was set aside" in " ".join(text.split())
    assert "size " in text and "and 1 level of categories (--show-values shows them)" in " ".join(text.split())


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"a,b\n1,2\n", "not a sound model file"),
        (b"", "is empty"),
        (b"PK\x03\x04" + bytes(50), "a zip archive"),
        (b"\x80\x04\x95" + bytes(50), "a pickle"),
    ],
)
def test_what_is_no_model_is_bad_input_in_one_line(cli, content, word):
    Path("x.certifit").write_bytes(content)
    for options in ([], ["--json"]):
        result = cli("inspect", "x.certifit", *options)
        assert result.exit_code == 2 and result.stdout == ""
        assert len(result.stderr.splitlines()) == 1
        assert result.stderr.startswith("certifit inspect: ") and word in result.stderr


def test_a_missing_file_a_folder_and_no_file_are_bad_input(cli, saved):
    assert "there is no file 'modle.certifit'" in cli("inspect", "modle.certifit").stderr
    assert "is a folder" in cli("inspect", saved).stderr
    for arguments in (["nothing"], [saved], []):
        assert cli("inspect", *arguments).exit_code == 2


def test_a_damaged_model_is_bad_input(cli, saved):
    path = saved / "model.certifit"
    sound = path.read_bytes()
    path.write_bytes(bytes([*sound[:-9], sound[-9] ^ 1, *sound[-8:]]))
    result = cli("inspect", path)
    assert result.exit_code == 2 and "damaged or edited" in result.stderr


def test_it_starts_without_what_is_heavy(cli, saved, shell):
    cf.save(Lasso(alpha=0.1).fit([[1.0], [2.0], [4.0]], [1.0, 2.0, 3.0]), saved / "lasso.certifit")
    code = (
        "import sys; from certifit.cli import main\n"
        "try: main(['inspect', sys.argv[1]])\n"
        "except SystemExit as error: assert not error.code\n"
        "assert not {'sklearn', 'scipy', 'pandas', 'pyarrow'} & set(sys.modules)"
    )
    result = shell(saved / "lasso.certifit", code=code)
    assert result.returncode == 0, result.stderr
    assert "Lasso" in result.stdout


def test_a_model_of_models_is_shown_verified_and_predicts(cli):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    labels = np.array(["low", "mid", "top"])[np.arange(60) % 3]
    frame.assign(kind=labels).to_csv("d.csv", index=False)
    scan = cf.scan_csv("d.csv", target="kind")
    model = cf.OneVsRestClassifier(cf.LogisticRegression(0.1)).fit(scan)
    cf.save(model, "m.certifit")
    text = " ".join(cli("inspect", "m.certifit").stdout.split())
    assert "OneVsRestClassifier" in text and "format 2" in text and "3 models, 3 certified" in text
    result = cli("verify", "m.certifit", "d.csv")
    assert result.exit_code == 0, result.output
    assert cli("predict", "m.certifit", "d.csv", "--out", "p.csv").exit_code == 0
    assert pd.read_csv("p.csv")["prediction"].tolist() == model.predict(scan).tolist()
