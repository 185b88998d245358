"""Whole files with a right checksum, of models whose kernels would follow an index out of an array or in a circle."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp

from shoal import BernoulliMixture, DensityKMeans, ExponentialFamilyMixture, SphericalKMeans, Suggester
from shoal.errors import BadModelFile
from shoal.store import container, load, save


def rows() -> sp.csr_matrix:
    rng = np.random.default_rng(0)
    return sp.csr_matrix(
        ((rng.random((60, 12)) < 0.4) * (np.arange(12) // 4 == np.arange(60)[:, None] % 3)).astype(float)
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    save(folder / "bernoulli", BernoulliMixture(3, random_state=0).fit(rows()))
    save(folder / "kmeans", SphericalKMeans(3, random_state=0).fit(rows()))
    save(folder / "densities", DensityKMeans(3, random_state=0).fit(rows().toarray() + 1))
    save(folder / "suggester", Suggester().fit(rows()))
    save(folder / "mixture", ExponentialFamilyMixture(3, n_sweeps=4, random_state=0).fit(rows()))
    return folder


def changed(source, target, name, at, value):
    """The file with one number changed; ``at`` None removes the last one."""
    with container.ModelFile(source) as file:
        facts, arrays = json.loads(file.header.text), file.arrays(in_memory=True)
    if at is None:
        arrays[name] = arrays[name][:-1].copy()
    else:
        arrays[name].reshape(-1)[at] = value
    container.write(target, json.dumps(facts), arrays)


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [
        ("feature", 0, 10**6),
        ("feature", 0, -1),
        ("cluster", 0, 99),
        ("head", 0, 10**9),
        ("head", 0, -2),
        ("first", 1, 10**9),
        ("next_of_feature", 0, 0),  # a circle
        ("next_of_cluster", 1, 0),
        ("used", 0, 10**9),
        ("used", 0, -1),
        ("prior", 2, 2),
        ("prior", 0, np.nan),
        ("common_at", 0, 7),
        ("mass", None, 0),
        ("background", 0, 1.5),
        ("spread", 0, np.inf),
        ("base", 0, 1e300),  # no score is near the best: a division by zero
        ("lift", 0, -1e300),
        ("ratio", 0, -1e300),
    ],
)
def test_profiles_that_lead_elsewhere(files, tmp_path, name, at, value):
    changed(files / "bernoulli", tmp_path / "m", f"state.profiles_.{name}", at, value)
    with pytest.raises(BadModelFile):
        load(tmp_path / "m")


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [
        ("chain_.labels", 0, 10**6),
        ("chain_.labels", 0, -2),
        ("stats_.size", None, 0),
        ("stats_.size", 0, -1),
        ("family_.mean", None, 0),
        ("family_.mean", 0, np.nan),
        ("typicality_", None, 0),
        ("agreement_", 0, np.inf),
        ("roster_.ids", None, 0),
    ],
)
def test_mixtures_that_lead_elsewhere(files, tmp_path, name, at, value):
    changed(files / "mixture", tmp_path / "m", f"state.{name}", at, value)
    with pytest.raises(BadModelFile):
        load(tmp_path / "m")


@pytest.mark.parametrize(
    ("name", "attribute"),
    [("kmeans", "objective_history_"), ("kmeans", "n_iter_"), ("densities", "n_iter_"), ("densities", "objective_")],
)
def test_what_learning_needs_is_there(files, tmp_path, name, attribute):
    """It was missed only by the first ``partial_fit``."""
    with container.ModelFile(files / name) as file:
        facts, arrays = json.loads(file.header.text), file.arrays(in_memory=True)
    del facts["model"]["state"][attribute]
    arrays = {key: array for key, array in arrays.items() if key.split(".")[1] != attribute}
    container.write(tmp_path / "m", json.dumps(facts), arrays)
    with pytest.raises(BadModelFile, match=attribute):
        load(tmp_path / "m")


def test_a_prior_of_another_family_than_the_mixture_says(files, tmp_path):
    with container.ModelFile(files / "mixture") as file:
        facts, arrays = json.loads(file.header.text), file.arrays(in_memory=True)
    for family in ("mixed", "gaussian", "nonsense", 5):
        facts["model"]["params"]["family"] = family
        container.write(tmp_path / "m", json.dumps(facts), arrays)
        with pytest.raises(BadModelFile, match="family"):
            load(tmp_path / "m")


def test_a_calibration_of_truth_values(files, tmp_path):
    with container.ModelFile(files / "suggester") as file:
        facts, arrays = json.loads(file.header.text), file.arrays(in_memory=True)
    arrays["state.model_.calibration.knots"] = np.zeros(3, dtype=bool)
    container.write(tmp_path / "m", json.dumps(facts), arrays)
    with pytest.raises(BadModelFile, match="calibration"):
        load(tmp_path / "m")


@pytest.mark.parametrize("name", ["bernoulli", "mixture", "kmeans", "densities", "suggester"])
def test_honest_models_are_loaded(files, tmp_path, name):
    model, X = load(files / name), rows().toarray() + (name == "densities")
    save(tmp_path / "again", model.partial_fit(X))
    if name == "suggester":
        np.testing.assert_array_equal(load(tmp_path / "again").suggest_batch(X)[1], model.suggest_batch(X)[1])
        return
    np.testing.assert_array_equal(load(tmp_path / "again").predict(X), model.predict(X))
