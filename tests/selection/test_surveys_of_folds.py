"""What the training rows of a split are made of is surveyed once, however many models are compared."""

import numpy as np
import pandas as pd

import certifit as cf
from certifit.maps.table.survey import Survey


def test_models_share_the_surveys_of_their_training_rows(monkeypatch):
    random = np.random.default_rng(0)
    X = pd.DataFrame({"a": random.standard_normal(60), "b": random.choice(["u", "v"], 60)})
    y = np.where(X["a"] + (X["b"] == "u") > 0.3, "yes", "no")
    surveyed = []
    of = Survey.of
    monkeypatch.setattr(Survey, "of", staticmethod(lambda *args, **how: surveyed.append(1) or of(*args, **how)))
    encoder = cf.TableEncoder()
    forest = cf.RandomForestClassifier(n_estimators=3, encoder=encoder)
    models = {"tree": cf.DecisionTreeClassifier(encoder=encoder), "forest": forest}
    cf.leaderboard({"tree": models["tree"]}, X, y, cv=3)
    n_alone = len(surveyed)
    surveyed.clear()
    cf.leaderboard(models, X, y, cv=3)
    assert 0 < len(surveyed) <= n_alone + 1


def test_models_share_the_encoders_of_their_training_rows(monkeypatch):
    random = np.random.default_rng(0)
    X = pd.DataFrame({"a": random.standard_normal(60), "b": random.choice(["u", "v"], 60)})
    y = np.where(X["a"] + (X["b"] == "u") > 0.3, "yes", "no")
    learnt = []
    learn = cf.TableEncoder._learn
    monkeypatch.setattr(cf.TableEncoder, "_learn", lambda self, source: learnt.append(1) or learn(self, source))
    tree, boosted = cf.DecisionTreeClassifier(encoder="auto"), cf.GradientBoostingClassifier(encoder="auto")
    cf.leaderboard({"tree": tree}, X, y, cv=3)
    n_alone = len(learnt)
    learnt.clear()
    cf.leaderboard({"tree": tree, "boosting": boosted}, X, y, cv=3)
    assert 0 < len(learnt) <= n_alone + 1
