"""Formulas of the report are MathML, of every model, and say what their text says."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

import certifit as cf
from certifit.report.formula import mathml, with_formulas

# Text -> the same as it is read aloud from the elements: fractions as (a)/(b), scripts as _ and ^.
FORMULAS = {
    "sum_i weight_i (y_i - b - x_i'w)^2 / (2 sum_i weight_i) + 0.5/2 |w|^2": (
        "(∑_i weight_i ((y_i−b−x_i^⊤w))^2)/(2∑_i weight_i)+(0.5)/(2)(|w|)^2"
    ),
    "exp(-|x - z|^2 / (2 0.5^2))": "exp(−((|x−z|)^2)/(2·0.5^2))",
    "sum_i weight_i -log p(class_i) / sum_i weight_i": "(∑_i weight_i −log p(class_i))/(∑_i weight_i)",
    "y_i e^-z_i + z_i": "y_ie^−z_i+z_i",
    "1/sum_i weight_i (1/2 |w|^2)": "(1)/(∑_i weight_i)((1)/(2)(|w|)^2)",
    "z^2/2 if |z| <= 1.35 else 1.35 |z|": "(z^2)/(2) if |z|≤1.35 else 1.35|z|",
    "share x (1 - sum_k p_k^2)": "share ×(1−∑_k p_k^2)",
    "trace V'AV": "trace V^⊤AV",
    "2.5e-06 w": "2.5·10^−6w",
}


def aloud(element):
    parts = [aloud(child) for child in element]
    joined = "".join(parts)
    match element.tag:
        case "mfrac":
            return f"({parts[0]})/({parts[1]})"
        case "msub" | "munder":
            return f"{parts[0]}_{parts[1]}"
        case "msup":
            base = f"({parts[0]})" if element[0].tag == "mrow" else parts[0]
            return f"{base}^{parts[1]}"
        case "msubsup":
            return f"{parts[0]}_{parts[1]}^{parts[2]}"
        case "mspace":
            return " "
    return (element.text or "").replace("\u00a0", " ") + joined


def plain(words):
    return re.sub(r"\s+", "", words)


@pytest.mark.parametrize(("text", "read"), FORMULAS.items(), ids=range(len(FORMULAS)))
def test_a_formula_reads_as_it_is_written(text, read):
    made = str(mathml(text)).replace("&nbsp;", "\u00a0")
    assert plain(aloud(ElementTree.fromstring(made))) == plain(read)


MODELS = {
    "least squares": cf.LinearRegression(),
    "elastic net": cf.ElasticNet(),
    "huber": cf.HuberRegressor(),
    "kernel ridge": cf.KernelRidge(),
    "glm": cf.GLM("gamma", link="log"),
    "network": cf.MLPRegressor(max_iter=2, hidden_layer_sizes=(3,)),
    "boosting": cf.GradientBoostingRegressor(n_estimators=2),
    "tree": cf.DecisionTreeRegressor(max_depth=1),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_the_objective_of_every_model_is_read(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    formula = model.fit(X, np.exp(X[:, 0])).objective.partition(": ")[2]
    made = str(mathml(formula))
    assert "<code>" not in made
    for part in re.findall(r"<math.*?</math>", made):
        ElementTree.fromstring(part.replace("&nbsp;", "\u00a0"))


@pytest.mark.parametrize("text", ["sum_i (y_i", "/ n", "x §", "<script>alert(1)</script>)"])
def test_what_cannot_be_read_stays_as_written_and_harmless(text):
    made = str(mathml(text))
    assert "<script" not in made and (made.startswith("<code>") or "<math" in made)


def test_a_sentence_keeps_its_words():
    said = str(with_formulas("a quadratic exceeds its minimum by g' A^-1 g / 2"))
    assert said.startswith("a quadratic exceeds its minimum by <math") and "<mfrac>" in said
    assert str(with_formulas("weak duality: a < b")) == "weak duality: a &lt; b"
