"""The one-pass start: every row placed once, in some order."""

# mypy: ignore-errors
from __future__ import annotations

from shoal.families.kernels.candidates_kernels import list_candidates, remember_candidates
from shoal.families.kernels.counts_kernels import add_row, has_room, no_longer_empty
from shoal.families.kernels.random_kernels import below
from shoal.families.kernels.scores_kernels import LOG_ZERO, refresh_cluster, score_empty, score_row
from shoal.jit import kernel


@kernel
def place_rows(items, prior, clusters, postings, lists, keep, order, first, last, state, work):
    """One-pass start: rows in `order`, each to the best of its candidates and a new cluster. What has any hope is kept
    in its list. Returns how far it came, as sample_rows does."""
    n_clusters = len(clusters.size)
    for at in range(first, last):
        row = order[at]
        if postings.left_out[0] > 0:
            return at
        n_chosen = list_candidates(items, prior, clusters, postings, row, -1, work)
        n_empty = clusters.empty[n_clusters]
        target, best, empty_score = -1, LOG_ZERO, LOG_ZERO
        if n_empty > 0:
            target = clusters.empty[n_empty - 1]
            best = empty_score = score_empty(items, prior, clusters, row, n_empty)
        for place in range(n_chosen):
            cluster = work.chosen[place]
            score = score_row(items, prior, clusters, row, cluster, False, work.marked)
            work.scores[place] = score
            if score > best:
                target, best = cluster, score
        if target < 0:
            target = below(state, n_clusters)
        if not has_room(clusters, target, items.ptr[row + 1] - items.ptr[row]):
            return at
        if clusters.size[target] == 0:
            work.chosen[n_chosen], work.scores[n_chosen] = work.chosen[0], work.scores[0]
            work.chosen[0], work.scores[0] = target, best
            n_chosen += 1
            no_longer_empty(clusters, target)
        add_row(items, clusters, postings, row, target)
        clusters.labels[row] = target
        remember_candidates(lists, row, target, best, n_chosen, empty_score, keep, work)
        refresh_cluster(prior, clusters, target, work.marked)
    return last
