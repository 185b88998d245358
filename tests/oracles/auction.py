"""The auction played by the book, one setting at a time; and the integer program by trying everything."""

from __future__ import annotations

import itertools
import math

import numpy as np

TOLERANCE = 1 - 1e-12  # a score this close to a reserve clears it


def play(bids, ctrs, alpha, reserve, sidebar_reserve, reference_ctr, on_mainline, on_sidebar):
    """[(bid index, section, place, price)] of the ads shown, in order."""
    quality = [math.exp(alpha * math.log(ctr / reference_ctr)) for ctr in ctrs]
    score = [bid * q for bid, q in zip(bids, quality, strict=True)]
    order = sorted(range(len(bids)), key=lambda i: (-score[i], -bids[i], i))
    bar = max(reserve, sidebar_reserve)
    n_mainline = 0
    while n_mainline < min(len(order), on_mainline) and score[order[n_mainline]] >= bar * TOLERANCE:
        n_mainline += 1
    page = []
    for rank, i in enumerate(order):
        following = score[order[rank + 1]] if rank + 1 < len(order) else 0.0
        if rank < n_mainline:
            page.append((i, 1, rank, max(following, bar) / quality[i]))
        elif rank < n_mainline + on_sidebar and score[i] >= sidebar_reserve * TOLERANCE:
            page.append((i, 2, rank - n_mainline, max(following, sidebar_reserve) / quality[i]))
    return page


def replay(log, policy, click_ctr=None):
    """(n_keywords, 4): clicks, revenue, mainline ads, all ads under one policy."""
    click_ctr = log.ctr if click_ctr is None else click_ctr
    mainline, sidebar = log.layout.tables()
    out = np.zeros((log.n_keywords, 4))
    for auction in range(log.n_auctions):
        q, at = log.keyword[auction], slice(log.starts[auction], log.starts[auction + 1])
        page = play(
            log.bid[at],
            log.ctr[at],
            policy.alpha[q],
            policy.reserve[q],
            policy.sidebar_reserve[q],
            log.reference_ctr,
            mainline.shape[1],
            sidebar.shape[1],
        )
        n_mainline = sum(section == 1 for _, section, _, _ in page)
        for i, section, place, price in page:
            factor = (mainline if section == 1 else sidebar)[n_mainline, place]
            clicks = log.weight[auction] * factor * click_ctr[at][i]
            out[q] += [clicks, clicks * price, log.weight[auction] * (section == 1), log.weight[auction]]
    return out


def best_choice(value, rows, at_least):
    """Try every combination: the best total value with sum(rows[r]) >= at_least[r] for every r, or None."""
    n_classes, n_items = value.shape
    best = None
    for choice in itertools.product(range(n_items), repeat=n_classes):
        at = (np.arange(n_classes), list(choice))
        if all(row[at].sum() >= bound for row, bound in zip(rows, at_least, strict=True)):
            total = value[at].sum()
            if best is None or total > best[0]:
                best = (total, np.array(choice))
    return best
