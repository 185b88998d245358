# mypy: ignore-errors
"""Sums behind the likelihood of labels given times, each in one walk over the documents."""

import math

import numpy as np

from shoal.jit import kernel
from shoal.streams.kernels.likelihood_kernels import HUGE, log_gamma, pseudo_count
from shoal.streams.kernels.weight_kernels import carry_wave, wave_weight
from shoal.streams.state.arrays import SMALLEST_TABLE

FEW = 16.0  # so many factors are multiplied rather than taken from log Gamma


@kernel
def total_weights(times, rate, totals, slopes):
    """T_i, the kernel summed over all earlier documents, and dT_i / drate; exponential kernel."""
    totals[0] = slopes[0] = 0.0
    for i in range(1, len(times)):
        gap = times[i] - times[i - 1]
        damp = math.exp(-rate * gap)
        slopes[i] = damp * (slopes[i - 1] - gap * (totals[i - 1] + 1.0))
        totals[i] = damp * (totals[i - 1] + 1.0)


@kernel
def member_weights(times, labels, n_clusters, rate):
    """Sum of log w_i over documents that are not the first of their cluster, its slope in rate, and the firsts.

    log w = log u_before - rate gap cannot underflow, however long a cluster was silent.
    """
    u, du, last = np.zeros(n_clusters), np.zeros(n_clusters), np.zeros(n_clusters)
    value, slope, n_first = 0.0, 0.0, 0
    for i in range(len(times)):
        c = labels[i]
        if u[c] == 0.0:
            n_first += 1
            u[c] = 1.0
        else:
            gap = times[i] - last[c]
            damp = math.exp(-rate * gap)
            value += math.log(u[c]) - rate * gap
            slope += du[c] / u[c] - gap
            du[c] = damp * (du[c] - gap * u[c])
            u[c] = 1.0 + damp * u[c]
        last[c] = times[i]
    return value, slope, n_first


@kernel
def wave_totals(times, waves, totals):
    """T_i for any kernel."""
    wave = np.zeros((waves.shape[1], 2))
    for i in range(len(times)):
        gap = times[i] - times[i - 1] if i > 0 else 0.0
        totals[i] = wave_weight(waves, wave, gap) if i > 0 else 0.0
        carry_wave(waves, wave, gap, wave)


@kernel
def wave_members(times, labels, n_clusters, waves):
    """Sum of log w_i over non-first members for any kernel, and the number of firsts."""
    wave = np.zeros((n_clusters, waves.shape[1], 2))
    last, seen = np.zeros(n_clusters), np.zeros(n_clusters, dtype=np.bool_)
    value, n_first = 0.0, 0
    for i in range(len(times)):
        c = labels[i]
        gap = times[i] - last[c] if seen[c] else 0.0
        if seen[c]:
            value += math.log(wave_weight(waves, wave[c], gap))
        else:
            n_first += 1
        carry_wave(waves, wave[c], gap, wave[c])
        seen[c] = True
        last[c] = times[i]
    return value, n_first


@kernel
def grid_update(clusters, window, upto, rates, log_alphas, total_u, clock, keep, log_liks):
    """Add the documents that settle to the likelihood of every rate and concentration on a grid.

    total_u holds each rate's T at the last settled document, whose time is clock[0]; keep < 1 forgets old evidence.
    """
    n_rates, n_alphas = len(rates), len(log_alphas)
    totals, alphas = np.zeros(n_rates), np.exp(log_alphas)
    for i in range(upto):
        c, t = window.docs[i].slot, window.docs[i].time
        first = clusters.grid_u[c, 0] == 0.0
        gap = max(0.0, t - clock[0])
        since = max(0.0, t - clusters.record[c].base_time)
        for g in range(n_rates):
            totals[g] = total_u[g] * math.exp(-rates[g] * gap)
            total_u[g] = totals[g] + 1.0
            log_w = 0.0
            if first:
                clusters.grid_u[c, g] = 1.0
            else:
                log_w = math.log(clusters.grid_u[c, g]) - rates[g] * since
                clusters.grid_log_w[c, g] += log_w
                clusters.grid_u[c, g] = 1.0 + clusters.grid_u[c, g] * math.exp(-rates[g] * since)
            for a in range(n_alphas):
                gain = log_alphas[a] if first else log_w
                log_liks[g, a] = keep * log_liks[g, a] + gain - math.log(totals[g] + alphas[a])
        clusters.record[c].base_time = t
        clock[0] = max(clock[0], t)


@kernel
def births_update(clusters, window, upto, waves, log_alphas, total_wave, clock, keep, log_liks):
    """Add the documents that settle to the likelihood of every concentration on a grid, for any kernel."""
    alphas = np.exp(log_alphas)
    for i in range(upto):
        c, t = window.docs[i].slot, window.docs[i].time
        first = window.docs[i].previous < 0 and clusters.record[c].n_settled == 0
        gap = max(0.0, t - clock[0])
        total = wave_weight(waves, total_wave, gap)
        carry_wave(waves, total_wave, gap, total_wave)
        for a in range(len(alphas)):
            log_liks[a] = keep * log_liks[a] + (log_alphas[a] if first else 0.0) - math.log(total + alphas[a])
        clock[0] = max(clock[0], t)


@kernel
def strength_evidence(clusters, tables, prior, floor, slots, factors, out):
    """log P(words of these clusters), up to a constant, when their base measure is made stronger by each factor."""
    out[:] = 0.0
    strength, log_factors = prior.blocks[0].strength, np.log(factors)
    keys, counts, block_of = tables.keys, tables.counts, prior.block
    blocks, seen = prior.blocks, prior.seen
    products = np.ones(len(factors))
    n_words = 0
    for c in slots:
        start = clusters.record[c].table_start
        for k in range(len(factors)):
            total = factors[k] * strength
            out[k] += log_gamma(total) - log_gamma(total + clusters.totals[c, 0])
        for at in range(start, start + (SMALLEST_TABLE << clusters.record[c].size_class)):
            feature = keys[at]
            if feature < 0 or counts[at] <= 0.0 or block_of[feature] != 0:
                continue
            count = float(counts[at])
            # Gamma(b + n) / Gamma(b) = b (b + 1) ... (b + n - 1), and the first factor b is a constant times the factor
            n_words += 1
            if count == 1.0:
                continue
            base = pseudo_count(seen, blocks, floor, feature, 0)
            if count <= FEW and count == math.floor(count):
                for k in range(len(factors)):
                    for more in range(1, int(count)):
                        products[k] *= factors[k] * base + more
                    if products[k] > HUGE:
                        out[k] += math.log(products[k])
                        products[k] = 1.0
            else:
                for k in range(len(factors)):
                    b = factors[k] * base
                    out[k] += log_gamma(count + b) - log_gamma(b + 1.0)
    for k in range(len(factors)):
        out[k] += math.log(products[k]) + n_words * log_factors[k]
