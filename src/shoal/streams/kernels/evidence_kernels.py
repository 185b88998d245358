# mypy: ignore-errors
"""The evidence of whole clusters: log P(their documents | one cluster), and what a union of two would have."""

import math

from shoal.jit import kernel
from shoal.streams.kernels.likelihood_kernels import log_gamma, log_rising, pseudo_count
from shoal.streams.kernels.table_kernels import find
from shoal.streams.kernels.weight_kernels import carry_wave, wave_weight
from shoal.streams.state.arrays import BERNOULLI, MULTINOMIAL, SMALLEST_TABLE, WAVES

FEW = 16.0  # so many factors are multiplied rather than taken from log Gamma


@kernel
def digamma(x):
    """The derivative of log Gamma, x > 0."""
    total = 0.0
    while x < 6.0:
        total -= 1.0 / x
        x += 1.0
    r = 1.0 / (x * x)
    return total + math.log(x) - 0.5 / x - r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r / 240)))


@kernel
def log_rise(base, amount):
    """log [Gamma(base + amount) / Gamma(base)]."""
    if amount <= FEW and amount == math.floor(amount):
        product = 1.0
        for more in range(int(amount)):
            product *= base + more
        return math.log(product)
    return log_gamma(base + amount) - log_gamma(base)


@kernel
def table_of(record, c):
    """Where the cluster's table begins, and its size."""
    return record[c].table_start, SMALLEST_TABLE << record[c].size_class


@kernel
def count_in(clusters, tables, c, feature):
    """How much of a feature the cluster holds."""
    start, size = table_of(clusters.record, c)
    at = find(tables.keys, start, size - 1, feature)
    return float(tables.counts[at]) if at >= 0 else 0.0


@kernel
def list_words(clusters, tables, prior, live, starts, features, counts):
    """The words (block 0) of these clusters one after another; returns how many there are in all."""
    n = 0
    for x in range(len(live)):
        start, size = table_of(clusters.record, live[x])
        for at in range(start, start + size):
            feature = tables.keys[at]
            if feature >= 0 and tables.counts[at] > 0.0 and prior.block[feature] == 0:
                features[n] = feature
                counts[n] = tables.counts[at]
                n += 1
        starts[x + 1] = n
    return n


@kernel
def expected_tables(features, counts, bases, tables):
    """In how many clusters a word was drawn anew from the base measure: sum of a [psi(n + a) - psi(a)]."""
    tables[:] = 0.0
    for at in range(len(features)):
        base = bases[features[at]]
        if counts[at] == 1.0:
            tables[features[at]] += 1.0
        else:
            tables[features[at]] += base * (digamma(counts[at] + base) - digamma(base))


@kernel
def better_strength(features, counts, totals, mean, strength, n_steps, scale):
    """Minka's fixed point for the strength of a Dirichlet whose mean is given, under a half-normal prior of a scale.

    Few clusters that all look alike make the likelihood of the strength flat without end; the prior ends it.
    """
    for _ in range(n_steps):
        above, below = 0.0, strength / scale**2
        for at in range(len(features)):
            share = mean[features[at]]
            base = strength * share
            above += share * (1.0 / base if counts[at] == 1.0 else digamma(counts[at] + base) - digamma(base))
        for x in range(len(totals)):
            below += digamma(totals[x] + strength) - digamma(strength)
        if above <= 0.0 or below <= 0.0:
            return strength
        strength *= above / below
    return strength


@kernel
def words_alone(clusters, tables, prior, status, c):
    """log P(words of c | one cluster), Dirichlet-multinomial, without multinomial coefficients."""
    total = 0.0
    for block in range(prior.blocks.shape[0]):
        strength, amount = prior.blocks[block].strength, clusters.totals[c, block]
        total += prior.blocks[block].evidence_weight * (log_gamma(strength) - log_gamma(strength + amount))
    start, size = table_of(clusters.record, c)
    for at in range(start, start + size):
        feature = tables.keys[at]
        if feature >= 0 and tables.counts[at] > 0.0:
            block = prior.block[feature]
            base = pseudo_count(prior.seen, prior.blocks, status[0].floor, feature, block)
            total += prior.blocks[block].evidence_weight * log_rise(base, float(tables.counts[at]))
    return total


@kernel
def words_together(clusters, tables, prior, status, a, b):
    """By how much log P(words) grows when a and b become one: only words in common and totals matter."""
    if clusters.record[a].n_terms > clusters.record[b].n_terms:
        a, b = b, a
    total = 0.0
    for block in range(prior.blocks.shape[0]):
        strength = prior.blocks[block].strength
        x, y = clusters.totals[a, block], clusters.totals[b, block]
        more = log_gamma(strength + x) - log_gamma(strength + x + y) + log_gamma(strength + y) - log_gamma(strength)
        total += prior.blocks[block].evidence_weight * more
    start, size = table_of(clusters.record, a)
    for at in range(start, start + size):
        feature = tables.keys[at]
        if feature < 0 or tables.counts[at] <= 0.0:
            continue
        x, y = float(tables.counts[at]), count_in(clusters, tables, b, feature)
        if y > 0.0:
            block = prior.block[feature]
            base = pseudo_count(prior.seen, prior.blocks, status[0].floor, feature, block)
            total += prior.blocks[block].evidence_weight * log_rising(max(x, y), base, min(x, y))
    return total


@kernel
def feature_evidence(on, n, hits, misses):
    """log P of n documents of which `on` have a feature, less that of none having it."""
    more = log_gamma(hits + on) - log_gamma(hits) + log_gamma(misses + n - on) - log_gamma(misses + n)
    return more


@kernel
def none_present(n, hits, misses):
    """log P of n documents without a feature."""
    return log_gamma(misses + n) - log_gamma(misses) + log_gamma(hits + misses) - log_gamma(hits + misses + n)


@kernel
def features_of(clusters, tables, prior, status, a, b):
    """Bernoulli evidence of a, or of a and b together (b >= 0)."""
    hits, misses = status[0].hits, status[0].misses
    n = float(clusters.record[a].n_members)
    if b >= 0:
        n += clusters.record[b].n_members
    total = prior.blocks[0].width * none_present(n, hits, misses)
    start, size = table_of(clusters.record, a)
    for at in range(start, start + size):
        if tables.keys[at] >= 0:
            on = float(tables.counts[at])
            if b >= 0:
                on += count_in(clusters, tables, b, tables.keys[at])
            total += feature_evidence(on, n, hits, misses)
    if b >= 0:
        start, size = table_of(clusters.record, b)
        for at in range(start, start + size):
            if tables.keys[at] >= 0 and count_in(clusters, tables, a, tables.keys[at]) == 0.0:
                total += feature_evidence(float(tables.counts[at]), n, hits, misses)
    return total


@kernel
def values_of(clusters, prior, a, b):
    """Normal-Gamma evidence of a, or of a and b together (b >= 0); sums are about the prior's mean."""
    n = float(clusters.record[a].n_members)
    if b >= 0:
        n += clusters.record[b].n_members
    total = 0.0
    for v in range(clusters.moments.shape[1]):
        first, second = clusters.moments[a, v, 0], clusters.moments[a, v, 1]
        if b >= 0:
            first += clusters.moments[b, v, 0]
            second += clusters.moments[b, v, 1]
        pseudo, shape, rate = prior.gaussian[v, 1], prior.gaussian[v, 2], prior.gaussian[v, 3]
        after = rate + 0.5 * max(0.0, second - first * first / (pseudo + n))
        total += log_gamma(shape + 0.5 * n) - log_gamma(shape) + shape * math.log(rate)
        total -= (shape + 0.5 * n) * math.log(after)
        total += 0.5 * math.log(pseudo / (pseudo + n)) - 0.5 * n * math.log(2 * math.pi)
    return total


@kernel
def evidence_alone(clusters, tables, prior, status, c):
    """log P(documents of c | one cluster)."""
    if status[0].family == MULTINOMIAL:
        return words_alone(clusters, tables, prior, status, c)
    if status[0].family == BERNOULLI:
        return features_of(clusters, tables, prior, status, c, -1)
    return values_of(clusters, prior, c, -1)


@kernel
def evidence_together(clusters, tables, prior, status, a, b):
    """log P(documents of a and b | one cluster) - log P(of a | one) - log P(of b | one)."""
    if status[0].family == MULTINOMIAL:
        return words_together(clusters, tables, prior, status, a, b)
    if status[0].family == BERNOULLI:
        both = features_of(clusters, tables, prior, status, a, b)
        apart = features_of(clusters, tables, prior, status, a, -1)
        return both - apart - features_of(clusters, tables, prior, status, b, -1)
    return values_of(clusters, prior, a, b) - values_of(clusters, prior, a, -1) - values_of(clusters, prior, b, -1)


@kernel
def total_evidence(clusters, tables, prior, status):
    """log P(documents | labels)."""
    total = 0.0
    for x in range(status[0].n_live):
        total += evidence_alone(clusters, tables, prior, status, clusters.live[x])
    return total


@kernel
def log_members(links, kind, a, b, wave):
    """Sum of log w over the members of a (and of b, if b >= 0) in order of time, but the first. None is settled.

    log w = log u - rate gap, u <- 1 + w; damped waves are carried in `wave`. A step kernel has rate 0.
    """
    i, j = links.record[a].first, links.record[b].first if b >= 0 else -1
    rate = links.record[a].rate
    total = u = last = 0.0
    n = 0
    wave[:] = 0.0
    while i >= 0 or j >= 0:
        of_a = j < 0 or (i >= 0 and i < j)
        at = i if of_a else j
        t = links.docs[at].time
        gap = t - last if n > 0 else 0.0
        if kind == WAVES:
            if n > 0:
                total += math.log(wave_weight(links.waves, wave, gap))
            carry_wave(links.waves, wave, gap, wave)
        else:
            if n > 0:
                log_w = math.log(u) - rate * gap
                total += log_w
                u = 1.0 + math.exp(log_w)
            else:
                u = 1.0
        last = t
        n += 1
        if of_a:
            i = links.docs[i].next
        else:
            j = links.docs[j].next
    return total
