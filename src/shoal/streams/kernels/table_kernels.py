# mypy: ignore-errors
"""Each cluster's words in small hash tables, and for each word the list of clusters that hold it.

A table entry knows its place in the posting list, so both are changed together in constant time.
"""

import numpy as np

from shoal.jit import inline_kernel, kernel
from shoal.streams.state.arrays import (
    SMALLEST_POSTING,
    SMALLEST_TABLE,
)


@inline_kernel
def home(feature, mask):
    return ((np.int64(feature) * 2654435769) >> 7) & mask


@kernel
def find(keys, start, mask, feature):
    """Where the feature is, or -1 - (where it would go)."""
    at = home(feature, mask)
    while True:
        key = keys[start + at]
        if key == feature:
            return start + at
        if key < 0:
            return -1 - (start + at)
        at = (at + 1) & mask


@kernel
def new_table(tables, status, size_class):
    """An empty table of that size; the caller has checked that there is room."""
    size = SMALLEST_TABLE << size_class
    start = tables.free[size_class]
    if start >= 0:
        tables.free[size_class] = tables.keys[start]
    else:
        start = status[0].table_top
        status[0].table_top += size
    for at in range(start, start + size):
        tables.keys[at] = -1
    return start


@kernel
def release_table(tables, size_class, start):
    tables.keys[start] = tables.free[size_class]
    tables.free[size_class] = start


@kernel
def record_moved_entry(record, tables, postings, feature, place):
    """The entry now at this place of the feature's list has moved: tell its cluster's table."""
    slot = postings.slot[postings.start[feature] + place]
    at = find(tables.keys, record[slot].table_start, (SMALLEST_TABLE << record[slot].size_class) - 1, feature)
    tables.where[at] = place


@kernel
def remove_posting(record, tables, postings, feature, place):
    """Take one entry out of a feature's list; the last entry takes its place."""
    start, last = postings.start[feature], postings.length[feature] - 1
    if place != last:
        postings.slot[start + place] = postings.slot[start + last]
        postings.amount[start + place] = postings.amount[start + last]
        record_moved_entry(record, tables, postings, feature, place)
    postings.length[feature] = last


@kernel
def forget_words(record, tables, postings, c):
    """Take all words of cluster c out of the index."""
    keys, where = tables.keys, tables.where
    for at in range(record[c].table_start, record[c].table_start + (SMALLEST_TABLE << record[c].size_class)):
        if keys[at] >= 0:
            remove_posting(record, tables, postings, keys[at], where[at])


@kernel
def make_room(postings, status, feature):
    """Room for more entries of a feature: a block twice as large."""
    size_class = postings.size_class[feature]
    bigger = size_class + 1
    start = postings.free[bigger]
    if start >= 0:
        postings.free[bigger] = postings.slot[start]
    else:
        start = status[0].posting_top
        status[0].posting_top += SMALLEST_POSTING << bigger
    old = postings.start[feature]
    for place in range(postings.length[feature]):
        postings.slot[start + place] = postings.slot[old + place]
        postings.amount[start + place] = postings.amount[old + place]
    if size_class >= 0:
        postings.slot[old] = postings.free[size_class]
        postings.free[size_class] = old
    postings.start[feature] = start
    postings.size_class[feature] = bigger


@kernel
def grow_table(record, tables, postings, status, c):
    """Twice the table for cluster c; words whose count fell to 0 are left behind."""
    old_class, old = record[c].size_class, record[c].table_start
    bigger = old_class + 1
    start, mask = new_table(tables, status, bigger), (SMALLEST_TABLE << bigger) - 1
    kept = 0
    for at in range(old, old + (SMALLEST_TABLE << old_class)):
        feature = tables.keys[at]
        if feature < 0:
            continue
        if tables.counts[at] == 0.0:
            remove_posting(record, tables, postings, feature, tables.where[at])
            continue
        to = -1 - find(tables.keys, start, mask, feature)
        tables.keys[to], tables.counts[to], tables.where[to] = feature, tables.counts[at], tables.where[at]
        kept += 1
    release_table(tables, old_class, old)
    record[c].table_start, record[c].size_class, record[c].n_terms = start, bigger, kept


@kernel
def add_term(record, tables, postings, status, c, feature, amount):
    """Add an amount (negative to take away) of one word to cluster c."""
    mask = (SMALLEST_TABLE << record[c].size_class) - 1
    at = find(tables.keys, record[c].table_start, mask, feature)
    if at >= 0:
        count = tables.counts[at] + amount
        # with drift the amounts are not record, and float32 leaves a crumb where 0 is meant
        if count < 1e-5 * abs(amount):
            count = 0.0
        tables.counts[at] = count
        postings.amount[postings.start[feature] + tables.where[at]] = count
        return
    if amount <= 0:
        return
    size_class = postings.size_class[feature]
    if size_class < 0 or postings.length[feature] == SMALLEST_POSTING << size_class:
        make_room(postings, status, feature)
    place = postings.length[feature]
    to = postings.start[feature] + place
    postings.slot[to], postings.amount[to] = c, amount
    postings.length[feature] = place + 1
    at = -1 - at
    tables.keys[at], tables.counts[at], tables.where[at] = feature, amount, place
    record[c].n_terms += 1
    status[0].most_terms = max(status[0].most_terms, record[c].n_terms)
    if 2 * record[c].n_terms > SMALLEST_TABLE << record[c].size_class:
        grow_table(record, tables, postings, status, c)


@kernel
def room_for(tables, postings, status, features, lo, hi):
    """0 if one more document with these features surely fits, 1 if tables, 2 if postings may not."""
    need = 0
    size_classes, lengths = postings.size_class, postings.length
    for at in range(lo, hi):
        size_class = size_classes[features[at]]
        if size_class < 0 or lengths[features[at]] == SMALLEST_POSTING << size_class:
            need += SMALLEST_POSTING << (size_class + 1)
    if status[0].posting_top + need > len(postings.slot):
        return 2
    if status[0].table_top + 16 * (status[0].most_terms + hi - lo) + 4 * SMALLEST_TABLE > len(tables.keys):
        return 1
    return 0
