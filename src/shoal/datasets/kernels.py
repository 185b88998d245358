# mypy: ignore-errors
"""Loops of the generators. Randomness enters as a numpy Generator."""

from __future__ import annotations

import math

import numpy as np

from shoal.jit import inline_kernel, kernel


@inline_kernel
def zipf_rank(u, n_ranks, exponent, shift):
    """The rank below which a share ``u`` of a Zipf-Mandelbrot law lies.

    p(r) is the integral of (x + shift)^-exponent over [r, r + 1]. It has a closed inverse, so a draw
    costs one power and no table, however many ranks there are.
    """
    low, high = shift, n_ranks + shift
    if abs(exponent - 1.0) < 1e-9:
        x = low * math.exp(u * math.log(high / low))
    else:
        power = 1.0 - exponent
        a = low**power
        x = (a + u * (high**power - a)) ** (1.0 / power)
    return min(max(int(x - shift), 0), n_ranks - 1)


@inline_kernel
def position(cumulative, u):
    """The first place whose cumulative share exceeds ``u``."""
    low, high = 0, cumulative.size - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] <= u:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def draw_documents(labels, lengths, topics, topic_cumulative, topic_share, n_features, exponent, shift, rng, out):
    """Words of each document, from its topic or from the background; ``out`` is filled row after row."""
    at = 0
    for row in range(labels.size):
        for _ in range(lengths[row]):
            if rng.random() < topic_share:
                out[at] = topics[labels[row], position(topic_cumulative, rng.random())]
            else:
                out[at] = zipf_rank(rng.random(), n_features, exponent, shift)
            at += 1


@kernel
def draw_keyword_sets(labels, lengths, topics, topic_cumulative, topic_share, n_features, exponent, shift, rng, out):
    """Distinct keywords of each item; an item labelled -1 has background keywords only. ``lengths`` may shrink."""
    at = 0
    for row in range(labels.size):
        share = topic_share if labels[row] >= 0 else 0.0
        kept = 0
        for _ in range(8 * lengths[row]):  # a small topic may not have that many different keywords: give up then
            if kept == lengths[row]:
                break
            if rng.random() < share:
                word = topics[labels[row], position(topic_cumulative, rng.random())]
            else:
                word = zipf_rank(rng.random(), n_features, exponent, shift)
            seen = False
            for earlier in range(at, at + kept):
                if out[earlier] == word:
                    seen = True
                    break
            if not seen:
                out[at + kept] = word
                kept += 1
        lengths[row] = kept
        at += kept
    return at


@kernel
def count_words(words, lengths, indptr, indices, counts):
    """Sort each row's words and count repeats; rows are packed one after another, and the total is given back."""
    read, write = 0, 0
    indptr[0] = 0
    for row in range(lengths.size):
        ordered = np.sort(words[read : read + lengths[row]])
        read += lengths[row]
        start = write
        for place in range(ordered.size):
            if write > start and indices[write - 1] == ordered[place]:
                counts[write - 1] += 1
            else:
                indices[write] = ordered[place]
                counts[write] = 1
                write += 1
        indptr[row + 1] = write
    return write


@kernel
def draw_threads(times, decay, concentration, rng, labels):
    """Thread of each message: a new one, or that of an earlier message drawn by its decayed weight.

    ``mass[m]`` is the weight of messages 0..m at the time of m. Seen from a later time t the cumulative weight up to m
    is mass[m] exp(-decay (t - times[m])), which grows with m, so the draw is a binary search and nothing overflows.
    """
    n_threads = 0
    mass = np.empty(times.size)
    for message in range(times.size):
        now = times[message]
        total = 0.0
        if message > 0:
            total = mass[message - 1] * math.exp(-decay * (now - times[message - 1]))
        u = rng.random() * (total + concentration)
        if u >= total:
            labels[message] = n_threads
            n_threads += 1
        else:
            low, high = 0, message - 1
            while low < high:
                middle = (low + high) // 2
                if mass[middle] * math.exp(-decay * (now - times[middle])) <= u:
                    low = middle + 1
                else:
                    high = middle
            labels[message] = labels[low]
        mass[message] = total + 1.0
    return n_threads


@kernel
def draw_urn_words(order, labels, length, n_features, prior_total, exponent, shift, rng, words):
    """Words of each message from its thread's Dirichlet, by Polya's urn, so that no thread's distribution is stored.

    ``order`` lists the messages thread by thread. A word is fresh from the base measure with probability
    prior_total / (words so far + prior_total), otherwise a copy of one of the thread's earlier words.
    """
    first = 0  # place in ``order`` of the thread's first message
    for place in range(order.size):
        if labels[order[place]] != labels[order[first]]:
            first = place
        so_far = (place - first) * length
        for word in range(length):
            if rng.random() * (so_far + prior_total) < prior_total:
                if exponent == 0.0:
                    drawn = int(rng.random() * n_features)
                else:
                    drawn = zipf_rank(rng.random(), n_features, exponent, shift)
            else:
                back = int(rng.random() * so_far)
                drawn = words[order[first + back // length] * length + back % length]
            words[order[place] * length + word] = drawn
            so_far += 1
