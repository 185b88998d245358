# mypy: ignore-errors
"""How well a document fits a cluster, always as log P(d | cluster) - log P(d | a new cluster)."""

import math

from shoal.jit import kernel
from shoal.streams.kernels.table_kernels import add_term, find
from shoal.streams.state.arrays import (
    BERNOULLI,
    MULTINOMIAL,
    SMALLEST_TABLE,
)

HUGE = 1e200  # a product of ratios beyond it is turned into its logarithm


@kernel
def log_gamma(x):
    """log Gamma(x) for x > 0: Stirling's series past 12, where its error is below 1e-13."""
    product = 1.0
    while x < 12.0:
        product *= x
        x += 1.0
    r = 1.0 / x
    r2 = r * r
    tail = r * (1.0 / 12 - r2 * (1.0 / 360 - r2 * (1.0 / 1260 - r2 / 1680)))
    return (x - 0.5) * math.log(x) - x + 0.9189385332046727 + tail - math.log(product)


@kernel
def log_rising(count, base, amount):
    """log [Gamma(count + base + amount) Gamma(base) / (Gamma(count + base) Gamma(base + amount))]."""
    if amount == 1.0:
        return math.log(1.0 + count / base)
    if amount <= 8.0 and amount == math.floor(amount):
        product = 1.0
        for more in range(int(amount)):
            product *= (count + base + more) / (base + more)
        return math.log(product)
    return log_gamma(count + base + amount) - log_gamma(count + base) + log_gamma(base) - log_gamma(base + amount)


@kernel
def growth(status, t):
    """What one word at time t weighs on the scale in which counts are kept: later words weigh more if words drift."""
    return math.exp(status[0].drift * (t - status[0].origin)) if status[0].drift > 0.0 else 1.0


@kernel
def pseudo_count(seen, blocks, floor, feature, block):
    """The base measure's pseudo-count of one feature."""
    share = (seen[feature] + floor) / (blocks[block].mass + floor * blocks[block].width)
    return blocks[block].strength * share


@kernel
def prepare(prior, window, status, scratch, i):
    """What every cluster's score of document i needs of the document alone: pseudo-counts, and gains of its lengths."""
    bases, features, block_of = scratch.bases, window.features, prior.block
    blocks, seen, floor = prior.blocks, prior.seen, status[0].floor
    lo = window.starts[i]
    for entry in range(lo, window.starts[i + 1]):
        feature = features[entry]
        bases[entry - lo] = pseudo_count(seen, blocks, floor, feature, block_of[feature])
    for block in range(blocks.shape[0]):
        strength = blocks[block].strength
        scratch.fresh[block] = log_gamma(strength + window.lengths[i, block]) - log_gamma(strength)


@kernel
def length_gain(clusters, prior, window, scratch, c, i, scale):
    """The part of a Dirichlet-multinomial's gain that depends on lengths alone."""
    gain = 0.0
    for block in range(prior.blocks.shape[0]):
        length = window.lengths[i, block]
        if length > 0.0:
            total = clusters.totals[c, block] / scale + prior.blocks[block].strength
            before = clusters.log_gamma[c, block] if scale == 1.0 else log_gamma(total)
            more = before - log_gamma(total + length) + scratch.fresh[block]
            gain += prior.blocks[block].evidence_weight * more
    return gain


@kernel
def multinomial_gain(clusters, tables, prior, window, scratch, c, i, scale):
    """The gain of a prepared document. Ratios are multiplied, and their logarithm is taken once."""
    gain = length_gain(clusters, prior, window, scratch, c, i, scale)
    start, mask = clusters.record[c].table_start, (SMALLEST_TABLE << clusters.record[c].size_class) - 1
    # taken out of their tuples once: in the loop each look into a tuple would count references
    keys, counts, features, amounts, block_of = tables.keys, tables.counts, window.features, window.counts, prior.block
    blocks, bases = prior.blocks, scratch.bases
    one_kind = blocks.shape[0] == 1 and blocks[0].evidence_weight == 1.0
    lo, product = window.starts[i], 1.0
    for entry in range(lo, window.starts[i + 1]):
        feature = features[entry]
        at = find(keys, start, mask, feature)
        if at < 0 or counts[at] <= 0.0:
            continue
        count, base, amount = counts[at] / scale, bases[entry - lo], float(amounts[entry])
        if one_kind and amount == 1.0:
            product *= 1.0 + count / base
            if product > HUGE:
                gain += math.log(product)
                product = 1.0
        else:
            gain += blocks[block_of[feature]].evidence_weight * log_rising(count, base, amount)
    return gain + math.log(product)


@kernel
def bernoulli_gain(clusters, tables, window, status, c, i):
    hits, misses, n = status[0].hits, status[0].misses, clusters.record[c].n_members
    start, mask = clusters.record[c].table_start, (SMALLEST_TABLE << clusters.record[c].size_class) - 1
    gain = clusters.record[c].absent
    for entry in range(window.starts[i], window.starts[i + 1]):
        at = find(tables.keys, start, mask, window.features[entry])
        count = float(tables.counts[at]) if at >= 0 else 0.0
        gain += math.log((count + hits) / hits) - math.log((n - count + misses) / misses)
    return gain


@kernel
def refresh_absent(clusters, tables, prior, status, c):
    """The gain of a document without any feature, from which the others are corrected."""
    hits, misses, n = status[0].hits, status[0].misses, clusters.record[c].n_members
    width = prior.blocks[0].width
    total = width * math.log((hits + misses) / (n + hits + misses))
    start = clusters.record[c].table_start
    kept = 0
    for at in range(start, start + (SMALLEST_TABLE << clusters.record[c].size_class)):
        if tables.keys[at] >= 0 and tables.counts[at] > 0.0:
            total += math.log((n - tables.counts[at] + misses) / misses)
            kept += 1
    clusters.record[c].absent = total + (width - kept) * math.log((n + misses) / misses)


@kernel
def log_student(x, n, total, square, prior):
    """Posterior predictive of a Normal with a Normal-Gamma prior (mean, pseudo-count, shape, scale).

    x and the sums are taken about the prior's mean: far from 0 the difference of sums would lose its digits.
    """
    pseudo, shape, rate = prior[1], prior[2], prior[3]
    count = pseudo + n
    center = total / count
    a = shape + 0.5 * n
    b = rate + 0.5 * max(0.0, square - count * center * center)
    spread = b * (count + 1.0) / count
    return (
        log_gamma(a + 0.5)
        - log_gamma(a)
        - 0.5 * math.log(2 * math.pi * spread)
        - (a + 0.5) * math.log1p((x - center) ** 2 / (2.0 * spread))
    )


@kernel
def gaussian_gain(clusters, prior, window, c, i):
    n = float(clusters.record[c].n_members)
    gain = 0.0
    for v in range(window.dense.shape[1]):
        x = window.dense[i, v] - prior.gaussian[v, 0]
        gain += log_student(x, n, clusters.moments[c, v, 0], clusters.moments[c, v, 1], prior.gaussian[v])
        gain -= log_student(x, 0.0, 0.0, 0.0, prior.gaussian[v])
    return gain


@kernel
def gain_of(clusters, tables, prior, window, status, scratch, c, i, scale):
    """log P(d_i | c) - log P(d_i | new), word by word, of a prepared document."""
    if status[0].family == MULTINOMIAL:
        return multinomial_gain(clusters, tables, prior, window, scratch, c, i, scale)
    if status[0].family == BERNOULLI:
        return bernoulli_gain(clusters, tables, window, status, c, i)
    return gaussian_gain(clusters, prior, window, c, i)


@kernel
def add_document(clusters, tables, postings, prior, window, status, c, i, sign):
    """Add document i to the sums of cluster c (sign 1.0) or take it away (-1.0); COUNT is already right."""
    if status[0].family != MULTINOMIAL and status[0].family != BERNOULLI:
        for v in range(window.dense.shape[1]):
            x = window.dense[i, v] - prior.gaussian[v, 0]
            clusters.moments[c, v, 0] += sign * x
            clusters.moments[c, v, 1] += sign * x * x
        return
    scale = growth(status, window.docs[i].time)
    record, features, amounts = clusters.record, window.features, window.counts
    for entry in range(window.starts[i], window.starts[i + 1]):
        add_term(record, tables, postings, status, c, features[entry], sign * scale * amounts[entry])
    for block in range(clusters.totals.shape[1]):
        clusters.totals[c, block] = max(0.0, clusters.totals[c, block] + sign * scale * window.lengths[i, block])
        strength = prior.blocks[block].strength
        clusters.log_gamma[c, block] = log_gamma(clusters.totals[c, block] + strength)
        clusters.log_unit[c, block] = math.log1p(clusters.totals[c, block] / strength)
    if status[0].family == BERNOULLI and clusters.record[c].n_members > 0 and clusters.record[c].n_terms >= 0:
        refresh_absent(clusters, tables, prior, status, c)
