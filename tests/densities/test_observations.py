import numpy as np
import pandas as pd
import pytest

from shoal.densities import DensityKMeans, read_observations
from shoal.errors import BadInput, BadSource, MissingColumn


@pytest.fixture
def visits():
    rng = np.random.default_rng(0)
    n = 4000
    user = rng.integers(0, 40, n)
    return pd.DataFrame(
        {
            "user": user,
            "page": rng.choice(["news", "sport"], n),
            "seconds": rng.normal(user % 2 * 10.0, 1 + user % 3),
            "clicked": (rng.random(n) < 0.1 + 0.5 * (user % 2)).astype(int),
            "events": rng.poisson(1 + user % 4),
        }
    )


def test_gaussians_are_the_groups_moments(visits):
    table = read_observations(visits, key="user", value="seconds", pseudo_count=0)
    groups = visits.groupby("user")["seconds"]
    np.testing.assert_array_equal(table.keys, np.arange(40))
    np.testing.assert_allclose(table.X[:, 0], groups.mean(), rtol=1e-12)
    variances = groups.var(ddof=0)
    np.testing.assert_allclose(table.X[:, 1], variances + np.percentile(variances, 1), rtol=1e-9)


def test_mixtures_have_one_block_for_each_component(visits):
    table = read_observations(
        visits, key="user", value=["seconds", "events"], component="page", family="gaussian_mixture"
    )
    assert table.components == ["news", "sport"]
    assert table.X.shape == (40, 2 + 4 + 4)
    np.testing.assert_allclose(table.X[:, :2].sum(1), 1)
    assert len(table.parameters) == 10
    DensityKMeans(3, family="gaussian_mixture", random_state=0).fit(table.X)


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("beta", {"value": "clicked"}),
        ("gamma", {"value": "events"}),
        ("poisson", {"value": "events"}),
        ("categorical", {"component": "page"}),
        ("dirichlet", {"component": "page"}),
    ],
)
def test_every_family_feeds_the_model(visits, family, options):
    table = read_observations(visits, key="user", family=family, **options)
    model = DensityKMeans(2, family=family, random_state=0).fit(table.X)
    assert table.X.shape[0] == 40
    assert table.n_observations.sum() == 4000
    if family == "beta":  # two kinds of users, told apart by how often they click
        assert len(set(model.labels_[::2])) == 1
        assert set(model.labels_[::2]) != set(model.labels_[1::2])


def test_files_and_selects_give_the_same(visits, tmp_path):
    visits.to_parquet(tmp_path / "v.parquet")
    visits.to_csv(tmp_path / "v.csv", index=False)
    wanted = read_observations(visits, key="user", value="clicked", family="beta").X
    sources = [tmp_path / "v.parquet", str(tmp_path / "v.csv"), f"SELECT * FROM '{tmp_path}/v.parquet'"]
    for source in sources:
        np.testing.assert_allclose(read_observations(source, key="user", value="clicked", family="beta").X, wanted)


def test_unusable_rows_are_counted_with_the_reason():
    table = {"user": ["a", "a", None, "b"], "seconds": [1.0, float("nan"), 2.0, 3.0]}
    found = read_observations(table, key="user", value="seconds")
    assert found.dropped == {"seconds missing or not finite": 1, "no key": 1}
    assert found.n_observations.tolist() == [1, 1]


def test_errors_name_the_column_and_the_remedy(visits, tmp_path):
    with pytest.raises(MissingColumn, match=r"no column 'second'.*Did you mean 'seconds'"):
        read_observations(visits, key="user", value="second")
    with pytest.raises(BadInput, match="needs component="):
        read_observations(visits, key="user", family="dirichlet")
    with pytest.raises(BadSource, match="no file"):
        read_observations(tmp_path / "none.csv", key="user", value="seconds")
    with pytest.raises(BadInput, match="at most 1"):
        read_observations({"user": ["a"], "clicked": [3]}, key="user", value="clicked", family="beta")
