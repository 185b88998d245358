"""Tables as people have them: dates, codes, nullable types, duplicate names, columns of nothing, one row."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from shoal.errors import BadInput
from shoal.families import ExponentialFamilyMixture
from shoal.families.distributions.table import TableFamily

N = 60
GROUP = np.arange(N) % 2
AGE = np.where(GROUP, 60.0, 30.0) + np.arange(N) % 7


def families_of(table: Any) -> list[str]:
    return [column.family for column in TableFamily.for_table(table).columns]


def days(at: int) -> datetime.date:
    return datetime.date(2020, 1, 1) + datetime.timedelta(days=at)


COLUMNS: list[tuple[Any, str]] = [
    (np.where(GROUP, "a", "b"), "categorical"),
    (GROUP.astype(bool), "categorical"),
    (pd.array([None if at % 7 == 0 else at % 2 == 1 for at in range(N)], dtype="boolean"), "categorical"),
    (pd.array([None if at % 7 == 0 else at % 5 for at in range(N)], dtype="Int64"), "poisson"),
    (pd.array([None if at % 7 == 0 else at * 0.5 - 9 for at in range(N)], dtype="Float64"), "gaussian"),
    (pd.Categorical(np.where(GROUP, "a", "b"), categories=["a", "b", "never"]), "categorical"),
    (np.array([10115, 80331, 94105, 20095])[np.arange(N) % 4], "categorical"),  # codes: few whole numbers, far apart
    ([decimal.Decimal(at) / 7 - 3 for at in range(N)], "gaussian"),
    (pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(N), unit="D"), "date"),
    (pd.Series(pd.date_range("2020-01-01", periods=N, tz="Europe/Berlin")), "date"),
    ([None if at % 7 == 0 else days(at) for at in range(N)], "date"),
    (pd.to_timedelta(np.arange(N) - 9, unit="h"), "gaussian"),
    (np.full(N, np.nan), "categorical"),
    ([None] * N, "categorical"),
    (np.full(N, 7.0), "categorical"),
    ([["x", "y"][: 1 + at % 2] if at % 7 else None for at in range(N)], "multinomial"),
    ([f"the {'quick' if at % 2 else 'slow'} fox {at}" for at in range(N)], "multinomial"),
    (np.full(N, 1e300) * (1 + np.arange(N)), "gaussian"),
]


@pytest.mark.parametrize(
    ("values", "family"), COLUMNS, ids=[f"{at}-{family}" for at, (_, family) in enumerate(COLUMNS)]
)
def test_a_column_is_taken_for_what_it_is(values: Any, family: str) -> None:
    frame = pd.DataFrame({"age": AGE, "other": values})
    assert families_of(frame)[1] == family
    model = ExponentialFamilyMixture(3, family="mixed", n_sweeps=2, random_state=0).fit(frame)
    assert np.isfinite(model.score_samples(frame)).all()
    assert "columns matter" in model.describe_cluster(0)
    model.impute(frame)
    model.sample(2, random_state=0)
    interval = model.credible_intervals()["means"]
    assert (interval.low <= interval.high).all()


def test_tables_of_every_make_are_the_same_table() -> None:
    polars = pytest.importorskip("polars")
    color = [None if at % 5 == 0 else "ab"[at % 2] for at in range(N)]
    seen = [days(int(200 * group) + at) for at, group in enumerate(GROUP)]
    columns = {"age": AGE.tolist(), "color": color, "seen": seen}
    records = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    makes = [columns, records, pd.DataFrame(columns), pa.table(columns), polars.DataFrame(columns)]
    makes.append(polars.DataFrame(columns).lazy())
    fits = [ExponentialFamilyMixture(3, family="mixed", n_sweeps=2, random_state=0).fit(table) for table in makes]
    for model in fits[1:]:
        np.testing.assert_array_equal(model.labels_, fits[0].labels_)
    assert "seen 2020-" in fits[0].describe_cluster(0)


def test_missing_dates_are_predicted_as_dates() -> None:
    seen: list[Any] = [days(int(400 * group) + at) for at, group in enumerate(GROUP)]
    seen[4] = None
    model = ExponentialFamilyMixture(2, family="mixed", n_sweeps=4, random_state=0).fit({"age": AGE, "seen": seen})
    found = model.impute({"age": AGE, "seen": seen})["seen"]
    assert found.rows.tolist() == [4]
    assert found.low[0] < np.datetime64("2020-01-30") < found.high[0]


def test_a_family_for_some_columns_and_none_for_others() -> None:
    table = {"age": AGE, "visits": np.arange(N) % 5, "id": [f"user{at}" for at in range(N)]}
    family = TableFamily.for_table(table, {"visits": "categorical", "id": None, "*": "auto"})
    assert {column.name: column.family for column in family.columns} == {"visits": "categorical", "age": "gaussian"}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"age": AGE, "id": [f"user{at}" for at in range(N)]}, "tells rows apart rather than groups. Leave it out"),
        ({"age": AGE, "price": [f"{at}.5" for at in range(N)]}, "convert them"),
        (pd.DataFrame(np.column_stack([AGE, AGE]), columns=["a", "a"]), "duplicate name 'a' at 0 and 1"),
        ({"age": AGE, "b": AGE[:5]}, "differ in length: 5, 60"),
        ({"age": np.append(AGE, np.inf)}, "row 60 of column 'age' is infinite"),
        (AGE, "a DataFrame, an Arrow table"),
        (pd.DataFrame({"a": []}), "no rows or no columns"),
    ],
)
def test_what_cannot_be_clustered_is_refused_with_what_to_do(table: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        ExponentialFamilyMixture(3, family="mixed").fit(table)


def test_one_row_and_levels_never_seen() -> None:
    model = ExponentialFamilyMixture(3, family="mixed", n_sweeps=2, random_state=0).fit({"a": [1.0], "b": ["x"]})
    assert model.n_clusters_ == 1
    assert model.predict({"a": [2.0], "b": ["never"]}).tolist() == [0]
