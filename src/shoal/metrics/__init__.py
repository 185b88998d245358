"""How good are the groups? Measures against a known truth, against owners, and of suggestions.

Labels are whole numbers or text. ``-1`` (or a missing value) marks an item that is unassigned; each measure that
compares labels takes ``outliers``:

- ``"cluster"`` (default): all such items form one more cluster, which is also how scikit-learn reads -1;
- ``"singletons"``: each such item is a cluster of its own, so leaving an item out is neither joined nor rewarded;
- ``"drop"``: items that are unassigned on either side are left out, so only what was clustered is compared.

All of them take memory in proportion to the number of items.
"""

from shoal.metrics.adjusted import adjusted_mutual_information
from shoal.metrics.cohesion import silhouette, silhouette_samples
from shoal.metrics.evaluation import evaluate
from shoal.metrics.owners import effective_number_of_clusters, owner_entropy, owner_information
from shoal.metrics.pairs import PairRates, PairROC, pair_rates, pair_roc, same_cluster_matrix
from shoal.metrics.partitions import (
    BCubed,
    VMeasure,
    adjusted_rand_index,
    b_cubed,
    normalized_mutual_information,
    purity,
    v_measure,
    variation_of_information,
)
from shoal.metrics.suggestions import ndcg_at, recall_at
from shoal.metrics.tables import Contingency, contingency

__all__ = [
    "variation_of_information",
    "normalized_mutual_information",
    "adjusted_mutual_information",
    "adjusted_rand_index",
    "purity",
    "b_cubed",
    "BCubed",
    "v_measure",
    "VMeasure",
    "pair_rates",
    "PairRates",
    "pair_roc",
    "PairROC",
    "same_cluster_matrix",
    "owner_entropy",
    "owner_information",
    "effective_number_of_clusters",
    "silhouette",
    "silhouette_samples",
    "recall_at",
    "ndcg_at",
    "contingency",
    "Contingency",
    "evaluate",
]
