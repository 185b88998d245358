"""The shipped sample."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq

from shoal.datasets import load_debian_packages, sample_path


def test_the_sample_is_small_tagged_and_holds_facts_only():
    assert sample_path().stat().st_size < 1_500_000
    table = pq.read_table(sample_path())
    assert table.column_names == ["package", "section", "tags", "maintainer"]
    assert table.num_rows >= 15_000
    assert str(table.schema.field("maintainer").type) == "int32"
    assert min(map(len, table["tags"].to_pylist())) >= 1


def test_it_reads_as_a_dataset():
    packages = load_debian_packages()
    assert packages.X.shape == (30303, 598)
    assert packages.X.nnz == 112_140
    assert (packages.X.data == 1).all()
    chess = packages.ids.tolist().index("gnuchess")
    tags = {packages.vocabulary[tag] for tag in packages.X[chess].indices}
    assert "game::board:chess" in tags
    assert packages.labels[chess] == "games"
    assert len(np.unique(packages.owners)) == 1742
