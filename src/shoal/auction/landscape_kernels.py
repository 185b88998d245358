# mypy: ignore-errors
"""Moments of each keyword's bids, section by section, in one walk over a log that is sorted by keyword."""

import numpy as np

from shoal.jit import kernel


@kernel
def moments(bid_starts, values, weight, component, count, mass, mean, variance):
    """Per keyword and component: bids, their weight, and weighted mean and variance of each coordinate.

    ``bid_starts`` are the keywords' first bids; ``values`` (n_bids, d); a component below 0 leaves the bid out.
    """
    d = values.shape[1]
    for keyword in range(bid_starts.shape[0] - 1):
        for at in range(bid_starts[keyword], bid_starts[keyword + 1]):
            z = component[at]
            if z >= 0:
                count[keyword, z] += 1
                mass[keyword, z] += weight[at]
                for c in range(d):
                    mean[keyword, z, c] += weight[at] * values[at, c]
        for z in range(count.shape[1]):
            if mass[keyword, z] > 0:
                for c in range(d):
                    mean[keyword, z, c] /= mass[keyword, z]
        for at in range(bid_starts[keyword], bid_starts[keyword + 1]):
            z = component[at]
            if z >= 0:
                for c in range(d):
                    variance[keyword, z, c] += weight[at] * (values[at, c] - mean[keyword, z, c]) ** 2
        for z in range(count.shape[1]):
            if mass[keyword, z] > 0:
                for c in range(d):
                    variance[keyword, z, c] /= mass[keyword, z]


@kernel
def upper_scores(bid_starts, scores, share, out):
    """The given quantile (rounded down to a bid) of each keyword's scores; 0 where there are none."""
    for keyword in range(bid_starts.shape[0] - 1):
        first = bid_starts[keyword]
        n = bid_starts[keyword + 1] - first
        out[keyword] = 0.0
        if n > 0:
            ordered = np.sort(scores[first : first + n])
            out[keyword] = ordered[int(share * (n - 1))]
