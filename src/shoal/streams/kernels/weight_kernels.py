# mypy: ignore-errors
"""The weight of clusters over time, and what a document's choice does to the documents after it."""

import math

from shoal.jit import kernel
from shoal.streams.state.arrays import (
    EXPONENTIAL,
    STEP,
)

TINY = 1e-300


@kernel
def kernel_at(waves, gap):
    """The kernel itself."""
    total = 0.0
    for q in range(waves.shape[1]):
        total += waves[0, q] * math.exp(-waves[1, q] * gap) * math.cos(waves[2, q] * gap)
    return max(total, TINY)


@kernel
def wave_weight(waves, wave, gap):
    """Sum of the kernel over members whose waves were summed a gap ago."""
    total = 0.0
    for q in range(waves.shape[1]):
        angle = waves[2, q] * gap
        total += (
            waves[0, q] * math.exp(-waves[1, q] * gap) * (wave[q, 0] * math.cos(angle) + wave[q, 1] * math.sin(angle))
        )
    return max(total, TINY)


@kernel
def carry_wave(waves, before, gap, after):
    """after = 1 + before moved on by the gap."""
    for q in range(waves.shape[1]):
        angle, damp = waves[2, q] * gap, math.exp(-waves[1, q] * gap)
        cos, sin = damp * math.cos(angle), damp * math.sin(angle)
        re, im = before[q, 0], before[q, 1]
        after[q, 0] = 1.0 + re * cos + im * sin
        after[q, 1] = im * cos - re * sin


@kernel
def log_weight(links, kind, c, p, t):
    """log w(t, c), p the last member of c before t (-1: only its settled members, which must exist)."""
    if kind == STEP:
        return math.log(links.record[c].n_members)
    if kind == EXPONENTIAL:
        if p >= 0:
            return math.log(links.docs[p].u) - links.record[c].rate * (t - links.docs[p].time)
        return math.log(links.record[c].base_u) - links.record[c].rate * max(0.0, t - links.record[c].base_time)
    if p >= 0:
        return math.log(wave_weight(links.waves, links.doc_wave[p], t - links.docs[p].time))
    return math.log(wave_weight(links.waves, links.base_wave[c], max(0.0, t - links.record[c].base_time)))


@kernel
def log_ratio(links, kind, c, p, q, t, u_max, eps):
    """By how much the prior of all labels grows when a document at t joins c, between members p and q (-1: none).

    A step kernel makes it the size of c. Otherwise: the weight of c at t, times (w_j + k) / w_j for each later member
    j. If c had nobody before t, its old first member q gives its alpha to the newcomer and gets w = k(t_q - t).
    """
    if kind == STEP:
        return math.log(links.record[c].n_members)
    has_past = p >= 0 or links.record[c].n_settled > 0
    log_w = log_weight(links, kind, c, p, t) if has_past else 0.0
    if q < 0:
        return log_w
    if kind == EXPONENTIAL:
        return exponential_ratio(links, c, q, t, has_past, log_w, u_max, eps)
    return wave_ratio(links, q, t, has_past, log_w)


@kernel
def exponential_ratio(links, c, q, t, has_past, log_w, u_max, eps):
    to_q = links.record[c].rate * (links.docs[q].time - t)
    # with a past: w_i (w_q + k) / w_q = w_i + 1, because w_i k(t_q - t_i) = w_q
    log_product = math.log1p(math.exp(log_w)) if has_past else -to_q
    docs = links.docs
    x = math.exp(-to_q) / docs[q].u
    j = docs[q].next
    product = 1.0
    # k(t_j - t_i) / w_j = x, and x falls by 1 - 1/u_j at each step: what is left adds up to at most x u_max
    while j >= 0 and x * u_max > eps:
        product *= 1.0 + x
        x *= 1.0 - 1.0 / docs[j].u
        j = docs[j].next
        if product > 1e200:
            log_product += math.log(product)
            product = 1.0
    return log_product + math.log(product)


@kernel
def wave_ratio(links, q, t, has_past, log_w):
    if has_past:
        log_product, j = log_w, q
    else:
        log_product, j = math.log(kernel_at(links.waves, links.docs[q].time - t)), links.docs[q].next
    while j >= 0:
        log_product += math.log1p(kernel_at(links.waves, links.docs[j].time - t) / links.docs[j].weight)
        j = links.docs[j].next
    return log_product


@kernel
def carry_to(links, kind, c, j):
    """Compute the sums of member j from its predecessor; returns the relative change."""
    p = links.docs[j].previous
    if kind == EXPONENTIAL:
        before = links.docs[j].u
        if p >= 0:
            gap = links.docs[j].time - links.docs[p].time
            after = 1.0 + links.docs[p].u * math.exp(-links.record[c].rate * gap)
        elif links.record[c].n_settled > 0:
            gap = links.docs[j].time - links.record[c].base_time
            after = 1.0 + links.record[c].base_u * math.exp(-links.record[c].rate * gap)
        else:
            after = 1.0
        links.docs[j].u = after
        return abs(after - before) / after
    before = links.docs[j].weight
    wave = links.doc_wave[j]
    if p >= 0:
        gap = links.docs[j].time - links.docs[p].time
        after = wave_weight(links.waves, links.doc_wave[p], gap)
        carry_wave(links.waves, links.doc_wave[p], gap, wave)
    elif links.record[c].n_settled > 0:
        gap = links.docs[j].time - links.record[c].base_time
        after = wave_weight(links.waves, links.base_wave[c], gap)
        carry_wave(links.waves, links.base_wave[c], gap, wave)
    else:
        after = 1.0  # never used: a first member has no weight before it
        for q in range(wave.shape[0]):
            wave[q, 0] = 1.0
            wave[q, 1] = 0.0
    links.docs[j].weight = after
    return abs(after - before) / after


@kernel
def carry_on(links, kind, c, j, tol):
    """Carry a change along the list from member j until it has faded below a relative tol."""
    if kind == STEP:
        return
    if kind == EXPONENTIAL:
        while j >= 0:
            if carry_to(links, kind, c, j) <= tol:
                return
            j = links.docs[j].next
        return
    while j >= 0:  # waves may cancel and come back, so a small change is no proof that the rest is small
        carry_to(links, kind, c, j)
        j = links.docs[j].next


@kernel
def refresh_tail(links, kind, c):
    """Remember the weight at the cluster's last member, which is all an arriving document needs."""
    last = links.record[c].last
    if last >= 0:
        links.record[c].log_u = math.log(links.docs[last].u) if kind == EXPONENTIAL else 0.0
        links.record[c].last_time = links.docs[last].time
    elif links.record[c].n_settled > 0:
        links.record[c].log_u = math.log(links.record[c].base_u) if kind == EXPONENTIAL else 0.0
        links.record[c].last_time = links.record[c].base_time


@kernel
def unlink(links, kind, c, i, tol):
    """Take document i out of its cluster's list."""
    p, q = links.docs[i].previous, links.docs[i].next
    if p >= 0:
        links.docs[p].next = q
    else:
        links.record[c].first = q
    if q >= 0:
        links.docs[q].previous = p
        carry_on(links, kind, c, q, tol)
    else:
        links.record[c].last = p
    links.record[c].here = p
    links.record[c].n_members -= 1
    refresh_tail(links, kind, c)


@kernel
def link(links, kind, c, i, p, tol):
    """Put document i into the list of c behind member p (-1: at its head)."""
    q = links.docs[p].next if p >= 0 else links.record[c].first
    links.docs[i].previous = p
    links.docs[i].next = q
    if p >= 0:
        links.docs[p].next = i
    else:
        links.record[c].first = i
    if q >= 0:
        links.docs[q].previous = i
    else:
        links.record[c].last = i
    carry_to(links, kind, c, i)
    if q >= 0:
        carry_on(links, kind, c, q, tol)
    links.record[c].here = i
    links.record[c].n_members += 1
    refresh_tail(links, kind, c)
