# mypy: ignore-errors
"""Splits and merges by sequential allocation in order of time (Dahl 2005), with the time prior in the ratio.

Two anchors begin the sides of a split. Every other member, in order of time, goes to side s with
q_s ~ P(d | words of s so far) g_s(t), where g_s is the kernel's weight of s so far, or the kernel to its anchor.
"""

import math

import numpy as np

from shoal.jit import kernel
from shoal.streams.kernels.evidence_kernels import log_members, words_alone, words_together
from shoal.streams.kernels.likelihood_kernels import log_gamma, pseudo_count
from shoal.streams.kernels.merge_kernels import gather, join, refresh_totals, relink, room_for_words
from shoal.streams.kernels.table_kernels import add_term
from shoal.streams.kernels.visit_kernels import open_cluster
from shoal.streams.kernels.weight_kernels import carry_wave, kernel_at, wave_weight
from shoal.streams.state.arrays import SLOTS, WAVES


@kernel
def uniform(random):
    """A number in [0, 1) from a state of one uint64 (splitmix64)."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    z = random[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return float((z ^ (z >> np.uint64(31))) >> np.uint64(11)) / 9007199254740992.0


@kernel
def log_fit(window, prior, bases, sides, s, i):
    """log P(document i | words of side s)."""
    total = 0.0
    for block in range(prior.blocks.shape[0]):
        length = window.lengths[i, block]
        if length > 0.0:
            held = sides.totals[s, block] + prior.blocks[block].strength
            total += prior.blocks[block].evidence_weight * (log_gamma(held) - log_gamma(held + length))
    for entry in range(window.starts[i], window.starts[i + 1]):
        feature, amount = window.features[entry], float(window.counts[entry])
        base = bases[feature] + sides.counts[s, feature]
        more = math.log(base) if amount == 1.0 else log_gamma(base + amount) - log_gamma(base)
        total += prior.blocks[prior.block[feature]].evidence_weight * more
    return total


@kernel
def add_to_side(window, sides, s, i, sign):
    for entry in range(window.starts[i], window.starts[i + 1]):
        sides.counts[s, window.features[entry]] += sign * window.counts[entry]
    for block in range(sides.totals.shape[1]):
        sides.totals[s, block] += sign * window.lengths[i, block]


@kernel
def clear_sides(window, sides, order, n):
    for x in range(n):
        for entry in range(window.starts[order[x]], window.starts[order[x] + 1]):
            sides.counts[0, window.features[entry]] = 0.0
            sides.counts[1, window.features[entry]] = 0.0
    sides.totals[:] = 0.0
    sides.wave[:] = 0.0
    sides.u[:] = 0.0


@kernel
def log_side_weight(waves, kind, rate, sides, s, t, anchor_time):
    """log of the weight that side s has at t; before its first member, the kernel to its anchor."""
    if sides.u[s] == 0.0:
        gap = anchor_time - t
        return math.log(kernel_at(waves, gap)) if kind == WAVES else -rate * gap
    gap = t - sides.last[s]
    return math.log(wave_weight(waves, sides.wave[s], gap)) if kind == WAVES else math.log(sides.u[s]) - rate * gap


@kernel
def carry_side(waves, kind, rate, sides, s, t):
    """A member at t joins side s; returns log w (0 for its first)."""
    first = sides.u[s] == 0.0
    log_w = 0.0 if first else log_side_weight(waves, kind, rate, sides, s, t, t)
    if kind == WAVES:
        carry_wave(waves, sides.wave[s], 0.0 if first else t - sides.last[s], sides.wave[s])
        sides.u[s] = 1.0
    else:
        sides.u[s] = 1.0 if first else 1.0 + math.exp(log_w)
    sides.last[s] = t
    return log_w


@kernel
def allocate(window, prior, bases, waves, kind, rate, sides, order, n, anchors, given, greedy, random):
    """Put order[:n] on two sides. Returns (log q, log P(words), sum of log w after the firsts).

    given: sides.of holds the answer, and only its probability is wanted.
    """
    log_q = words = log_w = 0.0
    for s in range(2):
        words += log_fit(window, prior, bases, sides, s, anchors[s])
        add_to_side(window, sides, s, anchors[s], 1.0)
    at_0, at_1 = window.docs[anchors[0]].time, window.docs[anchors[1]].time
    for x in range(n):
        i = order[x]
        t = window.docs[i].time
        if i == anchors[0] or i == anchors[1]:
            s = 0 if i == anchors[0] else 1
        else:
            fit_0, fit_1 = log_fit(window, prior, bases, sides, 0, i), log_fit(window, prior, bases, sides, 1, i)
            ahead = fit_0 - fit_1
            ahead += log_side_weight(waves, kind, rate, sides, 0, t, at_0)
            ahead -= log_side_weight(waves, kind, rate, sides, 1, t, at_1)
            if given:
                s = sides.of[x]
            elif greedy:
                s = 0 if ahead >= 0.0 else 1
            else:
                s = 0 if uniform(random) < 1.0 / (1.0 + math.exp(-min(max(ahead, -700.0), 700.0))) else 1
            behind = -ahead if s == 0 else ahead
            log_q -= behind + math.log1p(math.exp(-behind)) if behind > 0.0 else math.log1p(math.exp(behind))
            words += fit_0 if s == 0 else fit_1
            add_to_side(window, sides, s, i, 1.0)
        sides.of[x] = s
        log_w += carry_side(waves, kind, rate, sides, s, t)
    return log_q, words, log_w


@kernel
def improve_sides(window, prior, bases, sides, order, n, anchors, n_passes):
    """Greedy passes over both sides by words alone, each document given all others."""
    for _ in range(n_passes):
        moved = 0
        for x in range(n):
            i = order[x]
            if i == anchors[0] or i == anchors[1]:
                continue
            add_to_side(window, sides, sides.of[x], i, -1.0)
            better = log_fit(window, prior, bases, sides, 0, i) >= log_fit(window, prior, bases, sides, 1, i)
            s = 0 if better else 1
            moved += s != sides.of[x]
            sides.of[x] = s
            add_to_side(window, sides, s, i, 1.0)
        if moved == 0:
            return


@kernel
def part(clusters, tables, postings, prior, window, links, status, c, order, n, sides, rest):
    """Documents of side 1 leave c for a new cluster."""
    k = 0
    for x in range(n):
        if sides.of[x] == 1:
            rest[k] = order[x]
            k += 1
    fresh = open_cluster(clusters, tables, status, window.docs[rest[0]].time, clusters.record[c].rate)
    for x in range(k):
        i = rest[x]
        for entry in range(window.starts[i], window.starts[i + 1]):
            feature, amount = window.features[entry], float(window.counts[entry])
            add_term(clusters.record, tables, postings, status, c, feature, -amount)
            add_term(clusters.record, tables, postings, status, fresh, feature, amount)
        for block in range(clusters.totals.shape[1]):
            clusters.totals[c, block] -= window.lengths[i, block]
            clusters.totals[fresh, block] += window.lengths[i, block]
    relink(links, status[0].kind, fresh, rest, k)
    k = 0
    for x in range(n):
        if sides.of[x] == 0:
            rest[k] = order[x]
            k += 1
    relink(links, status[0].kind, c, rest, k)
    refresh_totals(clusters, tables, prior, status, fresh)
    refresh_totals(clusters, tables, prior, status, c)


@kernel
def most_told_apart(first, second):
    """Nats that two sides with so many words win when they have none in common (the base measure apart)."""
    total, most = first + second, 0.0
    for words in (first, second):
        if words > 0.0:
            most += words * math.log(total / words)
    return most


@kernel
def try_split(clusters, tables, postings, prior, window, links, status, bases, sides, order, rest, n, anchors,
              greedy, share, wave, random):  # fmt: skip
    """One proposal to split the anchors' cluster; whether it was taken, and the gain of the log joint."""
    c, kind = window.docs[anchors[0]].slot, status[0].kind
    rate = clusters.record[c].rate
    log_q, words, log_w = allocate(
        window, prior, bases, links.waves, kind, rate, sides, order, n, anchors, False, greedy, random
    )
    if greedy:
        improve_sides(window, prior, bases, sides, order, n, anchors, 2)
        clear_sides(window, sides, order, n)
        log_q, words, log_w = allocate(
            window, prior, bases, links.waves, kind, rate, sides, order, n, anchors, True, greedy, random
        )
    most = most_told_apart(sides.totals[0, 0], sides.totals[1, 0])
    clear_sides(window, sides, order, n)
    gain = words - words_alone(clusters, tables, prior, status, c) + status[0].log_alpha
    gain += log_w - log_members(links, kind, c, -1, wave)
    taken = gain > 1e-9 + share * most if greedy else math.log(uniform(random)) < gain - log_q
    if taken:
        part(clusters, tables, postings, prior, window, links, status, c, order, n, sides, rest)
    return taken, gain


@kernel
def try_merge(clusters, tables, postings, prior, window, links, status, bases, sides, order, rest, n, anchors,
              wave, random):  # fmt: skip
    """One Metropolis-Hastings proposal to merge the anchors' clusters."""
    a, b, kind = window.docs[anchors[0]].slot, window.docs[anchors[1]].slot, status[0].kind
    for x in range(n):
        sides.of[x] = 0 if window.docs[order[x]].slot == a else 1
    rate = clusters.record[a].rate
    log_q, _, log_w = allocate(
        window, prior, bases, links.waves, kind, rate, sides, order, n, anchors, True, False, random
    )
    clear_sides(window, sides, order, n)
    gain = words_together(clusters, tables, prior, status, a, b) - status[0].log_alpha
    gain += log_members(links, kind, a, b, wave) - log_w
    taken = math.log(uniform(random)) < gain + log_q
    if taken:
        if clusters.record[a].n_terms > clusters.record[b].n_terms:
            a, b = b, a
        join(clusters, tables, postings, prior, links, status, a, b, rest)
    return taken, gain


@kernel
def split_merge(clusters, tables, postings, prior, window, links, status, pairs, at, work, rule, won):
    """A proposal for each pair of anchors: a split of their cluster, or a merge of their two (not if greedy).

    greedy: a split is taken if the log joint rises by more than `share` of what sides without a word in common would
    win; otherwise by Metropolis-Hastings, which is exact for anchors drawn without a look at the labels. won[:3] counts
    splits, merges and nats. Returns the next pair: len(pairs), or earlier if status.need has to be enlarged first.
    """
    bases, sides, order, rest = work
    greedy, share, random = rule
    wave = np.zeros((links.waves.shape[1], 2))
    anchors = np.zeros(2, dtype=np.int64)
    while at < len(pairs):
        anchors[0], anchors[1] = min(pairs[at, 0], pairs[at, 1]), max(pairs[at, 0], pairs[at, 1])
        a, b = window.docs[anchors[0]].slot, window.docs[anchors[1]].slot
        if anchors[0] == anchors[1] or (a != b and greedy):
            at += 1
            continue
        if status[0].n_free < 1:
            status[0].need = SLOTS
            return at
        larger, smaller = (a, b) if clusters.record[a].n_terms >= clusters.record[b].n_terms else (b, a)
        if not room_for_words(clusters, tables, postings, status, smaller, clusters.record[larger].n_terms):
            return at
        n = gather(links, a, b if b != a else -1, order)
        if a == b:
            taken, gain = try_split(clusters, tables, postings, prior, window, links, status, bases, sides, order,
                                    rest, n, anchors, greedy, share, wave, random)  # fmt: skip
        else:
            taken, gain = try_merge(clusters, tables, postings, prior, window, links, status, bases, sides, order,
                                    rest, n, anchors, wave, random)  # fmt: skip
        if taken:
            won[0 if a == b else 1] += 1.0
            won[2] += gain
        at += 1
    return at


@kernel
def unlike_members(window, links, anchors, n_tries, counts, random, pairs):
    """For each anchor, of about n_tries random members of its cluster the one with the fewest words in common."""
    for x in range(len(anchors)):
        i = anchors[x]
        c = window.docs[i].slot
        for entry in range(window.starts[i], window.starts[i + 1]):
            counts[window.features[entry]] = window.counts[entry]
        best, least, share = i, math.inf, min(1.0, n_tries / links.record[c].n_members)
        j = links.record[c].first
        while j >= 0:
            if j != i and uniform(random) < share:
                common, length = 0.5 * uniform(random), 1.0
                for entry in range(window.starts[j], window.starts[j + 1]):
                    common += min(counts[window.features[entry]], window.counts[entry])
                    length += window.counts[entry]
                if common / length < least:
                    best, least = j, common / length
            j = links.docs[j].next
        for entry in range(window.starts[i], window.starts[i + 1]):
            counts[window.features[entry]] = 0.0
        pairs[x, 0], pairs[x, 1] = i, best


@kernel
def all_bases(prior, status, bases):
    """The pseudo-count of every feature."""
    for feature in range(len(bases)):
        block = prior.block[feature]
        bases[feature] = pseudo_count(prior.seen, prior.blocks, status[0].floor, feature, block)
