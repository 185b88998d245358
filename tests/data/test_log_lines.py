"""Log lines: masks and places against a slow version, new lines in the columns of old ones, what is refused."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

import shoal
from shoal.data.log_tokens import features_of_line, template_of
from shoal.errors import BadInput

LINES = [
    "Received block blk_38865049064139660 of size 67108864 from /10.250.14.38",
    "Received block blk_-1608999687919862906 of size 91178 from /10.250.10.6",
    "session opened for user root by (uid=0)",
    "  indented\tand   tabbed / ",
    "",
    "x",
    "key=12 7=key plain=word naïve=ß ünï/cödé",
]


def clip(word: str) -> str:
    """At most 48 bytes, whole letters."""
    return word.encode()[:48].decode(errors="ignore")


def masked(word: str) -> str:
    variable = re.search(r"[0-9]|/", word) if len(word.encode()) > 1 else re.search("[0-9]", word)
    if not variable:
        return clip(word)
    key = word[: word.find("=")] if "=" in word[1 : variable.start()] and word[0] != "=" else None
    return "<*>" if key is None else clip(key) + "=<*>"


def features(line: str) -> Counter[str]:
    words = [masked(word) for word in re.split(r"[ \t\n\r\v\f]+", line) if word]
    n, context = len(words), " ".join(words[:2])
    found = Counter(f"{context} {at}/{n}: {word}" for at, word in enumerate(words, start=1))
    if n:
        found[" ".join(words)] += max(1, n // 4)
    return found


def rows_of(data: shoal.Dataset) -> list[dict[str, float]]:
    names = list(data.vocabulary)
    return [{names[c]: v for c, v in zip(row.indices, row.data, strict=True)} for row in data.X]


def test_features_are_those_of_the_slow_version():
    rng = np.random.default_rng(0)
    letters = [*"ab=/:7. ,\t", "é", "漢", "==", "long" * 20, "漢" * 30]
    lines = LINES + ["".join(rng.choice(letters, rng.integers(0, 40))) for _ in range(300)]
    data = shoal.read({"line": lines}, text="line", tokens="log")
    for line, row in zip(lines, rows_of(data), strict=True):
        assert row == features(line)
        assert Counter(features_of_line(line)) == features(line)


def test_new_lines_are_read_as_the_old_were_and_kept_with_the_model(tmp_path):
    lines = [LINES[at % 3] for at in range(60)]
    data = shoal.read({"line": lines}, text="line", tokens="log")
    assert data.recipe.tokens == "log"
    assert data.recipe.weighting == "count"
    model = shoal.TimeSensitiveMixture(random_state=0).fit(data)
    shoal.save(tmp_path / "log.shoal", model, dataset=data)
    again = shoal.load(tmp_path / "log.shoal")
    new = shoal.read({"line": lines[:4]}, text="line", recipe=again)
    np.testing.assert_array_equal(new.X.toarray(), data.X[:4].toarray())
    assert model.labels_[0] == model.labels_[1] != model.labels_[2]
    titles = {model.cluster_title(each) for each in model.cluster_ids_.tolist()}
    assert titles == {"Received block <*> of size <*> from <*>", "session opened for user root by (uid=<*>"}


def test_a_template_masks_places_with_many_words():
    lines = [f"user {name} left room {room}" for name in ("ann", "ben", "cy") for room in "123"]
    counts = sum(map(features, lines), Counter())
    assert template_of(list(counts), list(counts.values())) == "user <*> left room <*>"
    assert template_of(["tea", "milk 1/2"], [1.0, 2.0]) is None


@pytest.mark.parametrize("options", [{"bigrams": True}, {"stop_words": "english"}, {"features": "line", "text": None}])
def test_options_that_do_not_go_with_log_lines(options):
    with pytest.raises(BadInput, match="tokens='log'"):
        shoal.read({"line": LINES}, **({"text": "line", "tokens": "log"} | options))
    with pytest.raises(BadInput, match="tokens is 'logs'"):
        shoal.read({"line": LINES}, text="line", tokens="logs")
