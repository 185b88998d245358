"""Pictures of a sampled mixture: its tree of clusters, the course of its chains, and their number of clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.families.hierarchy import linkage_of
from shoal.plotting import BLUE, COLORS, GREY, figure, plain_text

if TYPE_CHECKING:
    from shoal.families.inspection import FittedMixture

MOST_LEAVES = 40


def tree_plot(model: FittedMixture, n_leaves: int = MOST_LEAVES) -> Any:
    """The tree over the clusters, cut at ``n_leaves`` branches; each is named by its largest cluster's features."""
    from scipy.cluster.hierarchy import dendrogram

    tree = model.hierarchy_
    n_leaves = min(n_leaves, len(tree.merges) + 1)
    groups = tree.cut(n_leaves)
    drawn, axes = figure(7.5, 1.0 + 0.22 * n_leaves)
    names = dict(enumerate(_names(model, groups)))
    dendrogram(
        _linkage_of_groups(tree.merges, tree.linkage(), groups),
        ax=axes,
        orientation="right",
        color_threshold=0,
        above_threshold_color=BLUE,
        leaf_label_func=names.__getitem__,
        leaf_font_size=8,
    )
    axes.set_xlabel("log marginal lost by joining (nats)")
    axes.set_xscale("symlog", linthresh=1.0)
    axes.spines["left"].set_visible(False)
    return plain_text(drawn)


def _names(model: FittedMixture, groups: np.ndarray) -> list[str]:
    """A few words for each group, and how many clusters it holds."""
    names = []
    for group in range(int(groups.max()) + 1):
        rows = np.flatnonzero(groups == group)
        largest = int(model.roster_.ids[rows[np.argmax(model.stats_.size[rows])]])
        words = ", ".join(model.name_features(model.top_features(largest, n=4).features))
        names.append(f"{words} ({rows.size} clusters)" if rows.size > 1 else words)
    return names


def _linkage_of_groups(merges: np.ndarray, linkage: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The upper part of the tree, with the groups as its leaves."""
    n_groups, k = int(groups.max()) + 1, len(merges) + 1
    node = np.full(2 * k - 1, -1, dtype=np.int64)
    node[:k] = groups
    upper, height = [], []
    for merge, (one, two) in enumerate(merges):
        if merge < k - n_groups:
            node[k + merge] = node[one]
        else:
            upper.append([node[one], node[two]])
            height.append(linkage[merge, 2])
            node[k + merge] = n_groups + len(upper) - 1
    return linkage_of(np.array(upper), np.array(height))


def number_plot(model: FittedMixture) -> Any:
    """How many clusters there were in each kept sample."""
    numbers, shares = model.n_clusters_posterior_
    drawn, axes = figure()
    axes.bar(numbers, shares, color=BLUE, width=0.85)
    axes.axvline(model.n_clusters_, color=GREY, linestyle="--", linewidth=1.2)
    axes.set_xlabel("number of clusters (dashed: in the labels)")
    axes.set_ylabel("share of samples")
    axes.set_xlim(min(numbers.min(), model.n_clusters_) - 1.5, max(numbers.max(), model.n_clusters_) + 1.5)
    axes.xaxis.get_major_locator().set_params(integer=True)
    return drawn


def trace_plot(model: FittedMixture) -> Any:
    """Log joint and number of clusters by sweep, a line for each chain; of several chains, their second halves."""
    chains = getattr(model, "diagnostics_", None)
    drawn, (above, below) = figure(7.0, 4.2, rows=2)
    log_joint = [model.log_joint_history_] if chains is None else chains.log_joint
    n_clusters = [model.trace_.n_live] if chains is None else chains.n_clusters
    for axes, series, label in ((above, log_joint, "log joint"), (below, n_clusters, "clusters")):
        for at, values in enumerate(series):
            axes.plot(np.arange(1, len(values) + 1), values, color=COLORS[at % len(COLORS)], linewidth=1.2)
        axes.set_ylabel(label)
        axes.xaxis.get_major_locator().set_params(integer=True)
    below.yaxis.get_major_locator().set_params(integer=True)
    below.set_xlabel("sweep" if chains is None else "sweep of the second half")
    return drawn
