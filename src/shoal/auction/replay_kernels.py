# mypy: ignore-errors
"""All reserves of an auction in one pass, and the page one policy would have shown."""

import numpy as np

from shoal.jit import inline_kernel, kernel

# A score within one part in 10^12 of a reserve clears it: a reserve that was read off an observed score must let that
# score through, in whatever order the powers were computed.
CLEARS = 1.0 - 1e-12


@kernel
def rank(first, last, bid, log_ratio, alpha, sidebar_reserve, score, ad_at):
    """Fill the buffers with the best bids that clear the sidebar reserve, best first; how many there are.

    Order: score, then bid, then ad id (bids arrive by ad id, and an equal one never overtakes).
    """
    capacity = score.shape[0]
    bar = sidebar_reserve * CLEARS
    n_ranked = 0
    for at in range(first, last):
        s = bid[at] * np.exp(alpha * log_ratio[at])
        if s < bar or (n_ranked == capacity and s < score[capacity - 1]):
            continue
        place = n_ranked
        while place > 0 and (score[place - 1] < s or (score[place - 1] == s and bid[ad_at[place - 1]] < bid[at])):
            place -= 1
        if place >= capacity:
            continue
        n_ranked = min(n_ranked + 1, capacity)
        for other in range(n_ranked - 1, place, -1):
            score[other] = score[other - 1]
            ad_at[other] = ad_at[other - 1]
        score[place] = s
        ad_at[place] = at
    return n_ranked


@inline_kernel
def count_at_most(reserves, base, limit):
    """How many of the ascending reserves ``base * reserves`` are at most ``limit``."""
    low = 0
    high = reserves.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if base * reserves[middle] <= limit:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def add_auction(
    n_ranked, score, click, per_score, weight, base, reserves, floor, on_mainline, on_sidebar, worth, steps
):
    """Add one ranked auction to ``steps``, (n_reserves + 1, 5) differences along the reserves.

    As the reserve falls the mainline holds 0, 1 ... M ads in turn. For each number of mainline ads, clicks and shown
    ads are constant, and so is revenue, except that the last mainline ad pays the reserve itself: columns are clicks,
    constant revenue, revenue per unit of reserve, mainline ads, all ads.
    """
    most = on_mainline.shape[1]
    n_sidebar = on_sidebar.shape[1]
    n_reserves = reserves.shape[0]
    for at in range(n_ranked):  # clicks times the price that the next ad sets
        following = score[at + 1] if at + 1 < n_ranked else 0.0
        worth[at] = per_score[at] * max(following, floor)
    low = n_reserves
    for n_mainline in range(min(most, n_ranked) + 1):
        high = low  # reserves from `low` up to `high` put exactly this many ads into the mainline
        full = n_mainline in (most, n_ranked)
        low = 0 if full else count_at_most(reserves, base, score[n_mainline] / CLEARS)
        if high == 0:
            break
        if high <= low:
            continue
        clicks = 0.0
        revenue = 0.0
        for at in range(n_mainline):
            clicks += on_mainline[n_mainline, at] * click[at]
            if at + 1 < n_mainline:
                revenue += on_mainline[n_mainline, at] * worth[at]
        shown = min(n_ranked, n_mainline + n_sidebar)
        for at in range(n_mainline, shown):
            clicks += on_sidebar[n_mainline, at - n_mainline] * click[at]
            revenue += on_sidebar[n_mainline, at - n_mainline] * worth[at]
        steps[low, 0] += weight * clicks
        steps[high, 0] -= weight * clicks
        steps[low, 1] += weight * revenue
        steps[high, 1] -= weight * revenue
        steps[low, 3] += weight * n_mainline
        steps[high, 3] -= weight * n_mainline
        steps[low, 4] += weight * shown
        steps[high, 4] -= weight * shown
        if n_mainline > 0:
            last = n_mainline - 1
            following = score[n_mainline] if n_mainline < n_ranked else 0.0
            threshold = max(following, floor)
            middle = low if base * reserves[low] > threshold else count_at_most(reserves, base, threshold)
            middle = min(middle, high)
            factor = weight * on_mainline[n_mainline, last]
            if middle > low:
                steps[low, 1] += factor * worth[last]
                steps[middle, 1] -= factor * worth[last]
            if high > middle:
                per_unit = factor * per_score[last]
                steps[middle, 2] += per_unit
                steps[high, 2] -= per_unit


@kernel
def sweep(first_group, last_group, groups, auctions, alphas, reserve_choices, positions, outputs):
    """Replay some groups' auctions under every exponent and reserve; outputs: (n_groups, alphas * reserves)."""
    group_starts, group_keyword = groups
    starts, weight, bid, log_ratio, click_ctr = auctions
    alpha_base, alpha_steps, least_alpha = alphas
    reserve_base, reserves, sidebar_reserve = reserve_choices
    on_mainline, on_sidebar = positions
    clicks, revenue, mainline, impressions = outputs
    capacity = on_mainline.shape[1] + on_sidebar.shape[1] + 1
    score = np.empty(capacity)
    click = np.empty(capacity)
    per_score = np.empty(capacity)
    worth = np.empty(capacity)
    ad_at = np.empty(capacity, np.int64)
    n_reserves = reserves.shape[0]
    n_alphas = alpha_steps.shape[0]
    steps = np.empty((n_alphas, n_reserves + 1, 5))
    for group in range(first_group, last_group):
        keyword = group_keyword[group]
        floor = sidebar_reserve[keyword]
        base = reserve_base[keyword]
        steps[:] = 0.0
        for auction in range(group_starts[group], group_starts[group + 1]):
            for which in range(n_alphas):
                alpha = max(alpha_base[keyword] + alpha_steps[which], least_alpha)
                n_ranked = rank(starts[auction], starts[auction + 1], bid, log_ratio, alpha, floor, score, ad_at)
                for place in range(n_ranked):
                    at = ad_at[place]
                    click[place] = click_ctr[at]
                    per_score[place] = click_ctr[at] * bid[at] / score[place]  # clicks / quality
                add_auction(
                    n_ranked,
                    score,
                    click,
                    per_score,
                    weight[auction],
                    base,
                    reserves,
                    floor,
                    on_mainline,
                    on_sidebar,
                    worth,
                    steps[which],
                )
        for which in range(n_alphas):
            c = 0.0
            y = 0.0
            slope = 0.0
            m = 0.0
            n = 0.0
            for at in range(n_reserves):
                c += steps[which, at, 0]
                y += steps[which, at, 1]
                slope += steps[which, at, 2]
                m += steps[which, at, 3]
                n += steps[which, at, 4]
                out = which * n_reserves + at
                clicks[group, out] = c
                revenue[group, out] = y + slope * (base * reserves[at])
                mainline[group, out] = m
                impressions[group, out] = n


@kernel
def show(
    first_auction,
    last_auction,
    keyword,
    starts,
    bid,
    log_ratio,
    alpha,
    reserve,
    sidebar_reserve,
    n_mainline_places,
    n_sidebar_places,
    section,
    position,
    price,
):
    """Write section, place and price per click of every bid under one policy; bids not shown get 0, -1 and NaN."""
    capacity = n_mainline_places + n_sidebar_places + 1
    score = np.empty(capacity)
    ad_at = np.empty(capacity, np.int64)
    for auction in range(first_auction, last_auction):
        q = keyword[auction]
        first = starts[auction]
        last = starts[auction + 1]
        for at in range(first, last):
            section[at] = 0
            position[at] = -1
            price[at] = np.nan
        floor = sidebar_reserve[q]
        bar = max(reserve[q], floor)
        n_ranked = rank(first, last, bid, log_ratio, alpha[q], floor, score, ad_at)
        n_mainline = 0
        while n_mainline < min(n_ranked, n_mainline_places) and score[n_mainline] >= bar * CLEARS:
            n_mainline += 1
        for place in range(min(n_ranked, n_mainline + n_sidebar_places)):
            following = score[place + 1] if place + 1 < n_ranked else 0.0
            in_mainline = place < n_mainline
            at = ad_at[place]
            section[at] = 1 if in_mainline else 2
            position[at] = place if in_mainline else place - n_mainline
            price[at] = min(max(following, bar if in_mainline else floor) * bid[at] / score[place], bid[at])
