# mypy: ignore-errors
"""Stories merged upward into topics, the pair first whose words are the least unlike."""

import math

import numpy as np

from shoal.jit import kernel
from shoal.streams.kernels.likelihood_kernels import log_rising
from shoal.streams.kernels.story_kernels import length_evidence


@kernel
def load_words(rows, next_story, group, counts, touched):
    """Add up the words of all stories of a group; returns how many words were touched."""
    starts, features, amounts = rows
    n, story = 0, group
    while story >= 0:
        for at in range(starts[story], starts[story + 1]):
            if counts[features[at]] == 0.0:
                touched[n] = features[at]
                n += 1
            counts[features[at]] += amounts[at]
        story = next_story[story]
    return n


@kernel
def evidence_with_all(rows, columns, bases, strength, groups, me, work, gains):
    """gains[other]: log P(words of both | one group) - log P(words | two), for every group but me."""
    group_of, next_story, live, totals = groups
    counts, touched, theirs, found = work
    starts, stories, amounts = columns
    for other in range(len(gains)):
        gains[other] = length_evidence(strength, totals[me], totals[other]) if live[other] else -math.inf
    for x in range(load_words(rows, next_story, me, counts, touched)):
        feature, n = touched[x], 0
        for at in range(starts[feature], starts[feature + 1]):
            other = group_of[stories[at]]
            if other != me:
                if theirs[other] == 0.0:
                    found[n] = other
                    n += 1
                theirs[other] += amounts[at]
        mine = counts[feature]
        counts[feature] = 0.0
        for y in range(n):
            other = found[y]
            more = theirs[other]
            theirs[other] = 0.0
            gains[other] += log_rising(max(mine, more), bases[feature], min(mine, more))
    gains[me] = -math.inf


@kernel
def unite_groups(groups, into, gone):
    group_of, next_story, live, totals = groups
    story, last = gone, gone
    while story >= 0:
        group_of[story] = into
        last, story = story, next_story[story]
    next_story[last] = next_story[into]
    next_story[into] = gone
    totals[into] += totals[gone]
    live[gone] = False


@kernel
def merge_upward(rows, columns, bases, strength, groups, work, gains, merges, won):
    """Merge until one group is left: merges[step] is (gone, into), won[step] the evidence that the step adds.

    The next pair is the one with the most evidence per word, gain (1/a + 1/b) for a and b words. Plain evidence is in
    proportion to the smaller side, so that one group would take in all small ones, however unlike.
    """
    _, _, live, totals = groups
    n = len(totals)
    best = np.zeros(n, np.int64)
    for me in range(n):
        evidence_with_all(rows, columns, bases, strength, groups, me, work, gains[me])
        for other in range(n):
            gains[me, other] *= 1.0 / totals[me] + 1.0 / totals[other]
        best[me] = np.argmax(gains[me])
    for step in range(n - 1):
        into = -1
        for me in range(n):
            if live[me] and (into < 0 or gains[me, best[me]] > gains[into, best[into]]):
                into = me
        gone = best[into]
        merges[step, 0], merges[step, 1] = gone, into
        won[step] = gains[into, gone] / (1.0 / totals[into] + 1.0 / totals[gone])
        unite_groups(groups, into, gone)
        evidence_with_all(rows, columns, bases, strength, groups, into, work, gains[into])
        for other in range(n):
            gains[other, gone] = gains[gone, other] = -math.inf
            gains[into, other] *= 1.0 / totals[into] + 1.0 / totals[other]
            gains[other, into] = gains[into, other]
        for me in range(n):
            if live[me]:
                if me == into or best[me] == into or best[me] == gone:
                    best[me] = np.argmax(gains[me])
                elif gains[me, into] > gains[me, best[me]]:
                    best[me] = into


@kernel
def nearest_groups(rows, columns, bases, strength, groups, work, small, nearest):
    """For each of these stories the live group with the most evidence per word."""
    _, _, live, totals = groups
    gains = np.empty(len(totals))
    for at in range(len(small)):
        me = small[at]
        evidence_with_all(rows, columns, bases, strength, groups, me, work, gains)
        for other in range(len(totals)):
            if live[other]:
                gains[other] *= 1.0 / totals[me] + 1.0 / totals[other]
        nearest[at] = np.argmax(gains)
