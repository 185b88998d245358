"""Words, bigrams, stop words and tf-idf: the same as scikit-learn's, letter for letter."""

# ruff: noqa: RUF001 - letters that look like others are the point

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

import shoal
from oracles.data import as_dicts, count_rows, same_as_sklearn, tfidf, words
from shoal.data.tokens import Words, folded_letters
from shoal.errors import BadInput

TITLES = [
    "A note on canonical functions",
    "Convex bodies: few faces, and k-means of bodies",
    "Ünïcode ΟΔΥΣΣΕΥΣ ΣΑΣ Σ İstanbul ǅungla ﬁne naïve",
    "x y z",
    "",
    "snake_case v2 ２０１９ 東京都 東京 ⅷ ½ ª² 𝔘𝔫𝔦 Ⱥⱥ",
    "the the The of THE bodies",
    "it's e\u0301clair\u00a0non\u2003break tab\tnew\nline",
]
# Letters whose lower case is longer, shorter, final, or depends on the neighbours; marks; digits; blanks.
awkward = st.sampled_from(list("ΣσςİıIiſKÅȺⱥẞßǅ\u0307\u0301_'’-. aAbB19½²Ⅷ東\U0001d518\u200d\u00ad:"))
texts = st.lists(st.text(awkward | st.characters(exclude_categories=["Cs"]), max_size=30), min_size=1, max_size=8)


def read_texts(rows, **options):
    return shoal.read(pa.table({"words": pa.array(rows, pa.string())}), text="words", **options)


def cut(rows, **options):
    slices = Words(**options).cut(pa.array(rows, pa.string()))
    found = [bytes(slices.data[a:b]).decode() for a, b in zip(slices.starts, slices.stops, strict=True)]
    ends = [0, *slices.row_ends]
    return [found[a:b] for a, b in itertools.pairwise(ends)]


@given(texts, st.booleans(), st.booleans())
def test_words_are_python_s_words(rows, lowercase, bigrams):
    options = {"lowercase": lowercase, "bigrams": bigrams, "stop_words": ["aa", "ab"]}
    assert cut(rows, **options) == [words(row, **options) for row in rows]


def test_every_letter_there_is():
    """Each code point between two plain letters, cased and not."""
    everything = [chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
    rows = ["xX" + " yY".join(everything[at : at + 5000]) for at in range(0, len(everything), 5000)]
    for lowercase in (True, False):
        assert cut(rows, lowercase=lowercase) == [words(row, lowercase=lowercase) for row in rows]
    assert folded_letters(True)[ord("Q")] == ord("q")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({}, {}),
        ({"sublinear": True}, {"sublinear_tf": True}),
        ({"unit_length": False}, {"norm": None}),
        ({"lowercase": False}, {"lowercase": False}),
        ({"stop_words": "english", "bigrams": True}, {"stop_words": "english", "ngram_range": (1, 2)}),
        ({"stop_words": ["bodies", "the"]}, {"stop_words": ["bodies", "the"]}),
        ({"min_items": 2}, {"min_df": 2}),
    ],
)
def test_tfidf_is_scikit_learn_s(ours, theirs):
    same_as_sklearn(read_texts(TITLES * 3, **ours), TITLES * 3, **theirs)


def test_counts_are_scikit_learn_s():
    same_as_sklearn(read_texts(TITLES, weighting="count"), TITLES, vectorizer=CountVectorizer)
    same_as_sklearn(read_texts(TITLES, weighting="binary"), TITLES, vectorizer=CountVectorizer, binary=True)


@given(st.lists(st.lists(st.sampled_from(["ant", "bee", "cow", "doe"]), max_size=6), min_size=1, max_size=6))
def test_tfidf_by_hand(rows):
    if not any(rows):
        return
    dataset = read_texts([" ".join(row) for row in rows])
    found, expected = as_dicts(dataset.X, dataset.vocabulary), tfidf(count_rows(rows))
    assert found == [pytest.approx(row, rel=1e-12) for row in expected]
    assert dataset.summary["empty_rows"] == sum(not row for row in rows)


def test_new_rows_get_the_old_columns_and_the_old_idf():
    dataset = read_texts(TITLES, sublinear=True)
    part = shoal.read(pa.table({"words": TITLES[2:4]}), recipe=dataset)
    assert abs(part.X - dataset.X[2:4]).max() == 0
    assert part.summary["unknown_features"] == 0
    strange = shoal.read(pa.table({"words": ["utterly unknown words of functions"]}), recipe=dataset)
    assert strange.summary["unknown_features"] == 3
    assert strange.X.nnz == 2


def test_the_number_of_threads_changes_nothing(monkeypatch):
    rows = TITLES * 9000
    monkeypatch.setenv("SHOAL_NUM_THREADS", "1")
    one = read_texts(rows)
    monkeypatch.setenv("SHOAL_NUM_THREADS", "3")
    three = read_texts(rows)
    assert one.vocabulary == three.vocabulary
    assert abs(one.X - three.X).max() == 0


def test_stop_words_that_are_not_known():
    with pytest.raises(BadInput, match="stop_words is 'klingon'"):
        read_texts(TITLES, stop_words="klingon")
