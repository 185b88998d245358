# mypy: ignore-errors
"""The weight of clusters over time, and what a document's choice does to the documents after it."""

import math

from shoal.jit import kernel
from shoal.streams.state import (
    BASE_TIME,
    BASE_U,
    COUNT,
    EXPONENTIAL,
    FIRST,
    HERE,
    LAST,
    LAST_TIME,
    LOG_U,
    N_BASE,
    NEXT,
    PREV,
    RATE,
    STEP,
    TIME,
    WEIGHT,
    U,
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
        return math.log(links.whole[c, COUNT])
    if kind == EXPONENTIAL:
        if p >= 0:
            return math.log(links.doc_real[p, U]) - links.real[c, RATE] * (t - links.doc_real[p, TIME])
        return math.log(links.real[c, BASE_U]) - links.real[c, RATE] * max(0.0, t - links.real[c, BASE_TIME])
    if p >= 0:
        return math.log(wave_weight(links.waves, links.doc_wave[p], t - links.doc_real[p, TIME]))
    return math.log(wave_weight(links.waves, links.base_wave[c], max(0.0, t - links.real[c, BASE_TIME])))


@kernel
def log_ratio(links, kind, c, p, q, t, u_max, eps):
    """By how much the prior of all labels grows when a document at t joins c, between members p and q (-1: none).

    A step kernel makes it the size of c. Otherwise: the weight of c at t, times (w_j + k) / w_j for each later member
    j. If c had nobody before t, its old first member q gives its alpha to the newcomer and gets w = k(t_q - t).
    """
    if kind == STEP:
        return math.log(links.whole[c, COUNT])
    has_past = p >= 0 or links.whole[c, N_BASE] > 0
    log_w = log_weight(links, kind, c, p, t) if has_past else 0.0
    if q < 0:
        return log_w
    if kind == EXPONENTIAL:
        return exponential_ratio(links, c, q, t, has_past, log_w, u_max, eps)
    return wave_ratio(links, q, t, has_past, log_w)


@kernel
def exponential_ratio(links, c, q, t, has_past, log_w, u_max, eps):
    to_q = links.real[c, RATE] * (links.doc_real[q, TIME] - t)
    # with a past: w_i (w_q + k) / w_q = w_i + 1, because w_i k(t_q - t_i) = w_q
    log_product = math.log1p(math.exp(log_w)) if has_past else -to_q
    doc, doc_real = links.doc, links.doc_real
    x = math.exp(-to_q) / doc_real[q, U]
    j = doc[q, NEXT]
    product = 1.0
    # k(t_j - t_i) / w_j = x, and x falls by 1 - 1/u_j at each step: what is left adds up to at most x u_max
    while j >= 0 and x * u_max > eps:
        product *= 1.0 + x
        x *= 1.0 - 1.0 / doc_real[j, U]
        j = doc[j, NEXT]
        if product > 1e200:
            log_product += math.log(product)
            product = 1.0
    return log_product + math.log(product)


@kernel
def wave_ratio(links, q, t, has_past, log_w):
    if has_past:
        log_product, j = log_w, q
    else:
        log_product, j = math.log(kernel_at(links.waves, links.doc_real[q, TIME] - t)), links.doc[q, NEXT]
    while j >= 0:
        log_product += math.log1p(kernel_at(links.waves, links.doc_real[j, TIME] - t) / links.doc_real[j, WEIGHT])
        j = links.doc[j, NEXT]
    return log_product


@kernel
def carry_to(links, kind, c, j):
    """Compute the sums of member j from its predecessor; returns the relative change."""
    p = links.doc[j, PREV]
    if kind == EXPONENTIAL:
        before = links.doc_real[j, U]
        if p >= 0:
            gap = links.doc_real[j, TIME] - links.doc_real[p, TIME]
            after = 1.0 + links.doc_real[p, U] * math.exp(-links.real[c, RATE] * gap)
        elif links.whole[c, N_BASE] > 0:
            gap = links.doc_real[j, TIME] - links.real[c, BASE_TIME]
            after = 1.0 + links.real[c, BASE_U] * math.exp(-links.real[c, RATE] * gap)
        else:
            after = 1.0
        links.doc_real[j, U] = after
        return abs(after - before) / after
    before = links.doc_real[j, WEIGHT]
    wave = links.doc_wave[j]
    if p >= 0:
        gap = links.doc_real[j, TIME] - links.doc_real[p, TIME]
        after = wave_weight(links.waves, links.doc_wave[p], gap)
        carry_wave(links.waves, links.doc_wave[p], gap, wave)
    elif links.whole[c, N_BASE] > 0:
        gap = links.doc_real[j, TIME] - links.real[c, BASE_TIME]
        after = wave_weight(links.waves, links.base_wave[c], gap)
        carry_wave(links.waves, links.base_wave[c], gap, wave)
    else:
        after = 1.0  # never used: a first member has no weight before it
        for q in range(wave.shape[0]):
            wave[q, 0] = 1.0
            wave[q, 1] = 0.0
    links.doc_real[j, WEIGHT] = after
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
            j = links.doc[j, NEXT]
        return
    while j >= 0:  # waves may cancel and come back, so a small change is no proof that the rest is small
        carry_to(links, kind, c, j)
        j = links.doc[j, NEXT]


@kernel
def refresh_tail(links, kind, c):
    """Remember the weight at the cluster's last member, which is all an arriving document needs."""
    last = links.whole[c, LAST]
    if last >= 0:
        links.real[c, LOG_U] = math.log(links.doc_real[last, U]) if kind == EXPONENTIAL else 0.0
        links.real[c, LAST_TIME] = links.doc_real[last, TIME]
    elif links.whole[c, N_BASE] > 0:
        links.real[c, LOG_U] = math.log(links.real[c, BASE_U]) if kind == EXPONENTIAL else 0.0
        links.real[c, LAST_TIME] = links.real[c, BASE_TIME]


@kernel
def unlink(links, kind, c, i, tol):
    """Take document i out of its cluster's list."""
    p, q = links.doc[i, PREV], links.doc[i, NEXT]
    if p >= 0:
        links.doc[p, NEXT] = q
    else:
        links.whole[c, FIRST] = q
    if q >= 0:
        links.doc[q, PREV] = p
        carry_on(links, kind, c, q, tol)
    else:
        links.whole[c, LAST] = p
    links.whole[c, HERE] = p
    links.whole[c, COUNT] -= 1
    refresh_tail(links, kind, c)


@kernel
def link(links, kind, c, i, p, tol):
    """Put document i into the list of c behind member p (-1: at its head)."""
    q = links.doc[p, NEXT] if p >= 0 else links.whole[c, FIRST]
    links.doc[i, PREV] = p
    links.doc[i, NEXT] = q
    if p >= 0:
        links.doc[p, NEXT] = i
    else:
        links.whole[c, FIRST] = i
    if q >= 0:
        links.doc[q, PREV] = i
    else:
        links.whole[c, LAST] = i
    carry_to(links, kind, c, i)
    if q >= 0:
        carry_on(links, kind, c, q, tol)
    links.whole[c, HERE] = i
    links.whole[c, COUNT] += 1
    refresh_tail(links, kind, c)
