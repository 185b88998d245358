"""The report in a real browser, with the network off: it opens, sorts, finds, pages and unfolds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

from shoal import SphericalKMeans, read
from shoal.report import write_report


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Four clusters of fruit-like words, one of them named to break a page that does not escape."""
    words = {"apple": 30, "pear": 20, "plum": 10, "</script><b>x": 5}
    lines = [f"{word} {word}2 {word}3 item{number % 3}" for word, count in words.items() for number in range(count)]
    table = pa.table({"name": [f"row {n}" for n in range(len(lines))], "words": [line.split() for line in lines]})
    dataset = read(table, item="name", features="words")
    model = SphericalKMeans(4, random_state=0).fit(dataset)
    path = tmp_path_factory.mktemp("report") / "report.html"
    return write_report(path, model, dataset, title="Fruit & <friends>", timings={"fitting": 0.25})


def test_it_opens_without_network_and_says_what_it_is(report, open_page):
    page = open_page(report)
    assert page.locator("h1").inner_text() == "Fruit & <friends>"
    assert "65 items in 4 clusters by SphericalKMeans" in page.locator(".lead").inner_text()
    assert page.locator("figure svg").count() >= 3
    assert "0.25 s" in page.locator("main").inner_text()


def test_clusters_are_listed_largest_first_and_sort_on_click(report, open_page):
    page = open_page(report)
    sizes = lambda: [int(text) for text in page.locator("#clusters tr.row td:nth-child(2)").all_inner_texts()]  # noqa: E731
    assert sizes() == [30, 20, 10, 5]
    page.get_by_role("button", name="Items").click()
    assert sizes() == [5, 10, 20, 30]
    assert page.locator("th[aria-sort=ascending]").inner_text().startswith("Items")


def test_a_row_unfolds_into_a_card(report, open_page):
    page = open_page(report)
    page.locator("#clusters tr.row").first.click()
    card = page.locator(".card")
    assert "apple" in card.inner_text()
    assert "row " in card.locator(".items").inner_text()
    page.keyboard.press("Escape")
    page.locator("#clusters tr.row").first.press("Enter")
    assert page.locator(".card").count() == 0


def test_search_finds_features_and_items(report, open_page):
    page = open_page(report)
    page.locator("#search").fill("plum")
    assert page.locator("#clusters tr.row").count() == 1
    page.locator("#search").fill("no such word")
    assert page.locator("#count").inner_text() == "no cluster matches"


def test_a_feature_cannot_break_out_of_the_page(report, open_page):
    page = open_page(report)
    page.locator("#search").fill("</script>")
    assert "</script><b>x" in page.locator("#clusters tr.row").inner_text()


def test_thousands_of_clusters_stay_usable(tmp_path, open_page):
    X = sp.random(6000, 4000, density=0.005, format="csr", random_state=0)
    model = SphericalKMeans(2000, init="random", max_iter=1, random_state=0).fit(X)
    page = open_page(write_report(tmp_path / "large.html", model))
    assert page.locator("#clusters tr.row").count() == 100
    page.get_by_label("Next page").click()
    assert page.locator("#count").inner_text().endswith("200 of 2,000 clusters")


def test_a_title_that_looks_like_a_placeholder_stays_a_title(tmp_path, open_page):
    model = SphericalKMeans(2, random_state=0).fit(sp.csr_matrix([[1.0, 0], [2, 0], [0, 1]]))
    page = open_page(write_report(tmp_path / "r.html", model, title="@@CARDS@@"))
    assert page.locator("h1").inner_text() == "@@CARDS@@"


@pytest.mark.parametrize("name", ["mixture", "stream"])
def test_names_with_dollar_signs_are_drawn_as_they_are(tmp_path, name):
    """Matplotlib reads what is between two of them as mathematics, and fails."""
    import shoal

    X = sp.csr_matrix(np.kron(np.eye(3), np.ones((10, 4))))
    data = shoal.data.Dataset(X, [f"$5_$6^{column}$" for column in range(12)], times=1.6e9 + np.arange(30) * 3600.0)
    made = {"mixture": shoal.ExponentialFamilyMixture(4, n_sweeps=4, random_state=0),
            "stream": shoal.TimeSensitiveMixture(random_state=0)}  # fmt: skip
    write_report(tmp_path / "r.html", made[name].fit(data), data)
    assert "$5_$6^0$" in (tmp_path / "r.html").read_text()
