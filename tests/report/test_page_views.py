"""What a reader does with a report: the map, the slider, clusters over time; on a phone, light and dark."""

from __future__ import annotations

import numpy as np
import pytest

from shoal import ExponentialFamilyMixture, SphericalKMeans, read
from shoal.report import cluster_cards, write_report

SLIDE = "value => document.getElementById('relevance').oninput({ target: { value } })"
SIZES = {"desktop": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Three kinds of texts, one after the other in time; all say "shop", and no item has an id."""
    words = {"bikes": "wheel chain pedal", "cakes": "flour sugar butter", "pets": "dog cat leash"}
    table = {
        "text": [f"shop {text} {kind} $x_{n % 3}$" for kind, text in words.items() for n in range(40)],
        "when": [1.7e9 + 86400 * n for n in range(120)],
    }
    dataset = read(table, text="text", time="when", time_unit="s")
    model = SphericalKMeans(3, random_state=0).fit(dataset)
    path = tmp_path_factory.mktemp("views") / "report.html"
    return write_report(path, model, dataset, stability=np.array([0.9, 0.4, 1.0]))


def test_the_map_opens_the_cluster_that_is_clicked(report, open_page):
    page = open_page(report)
    places = page.evaluate("map.order.map(row => map.at(row))")
    page.locator(".map canvas").hover(position={"x": places[0][0], "y": places[0][1]})
    tip = page.locator(".map .tip")
    assert "40 items" in tip.inner_text()
    page.locator(".map canvas").click(position={"x": places[0][0], "y": places[0][1]})
    assert page.locator(".card").count() == 1
    before = page.evaluate("map.zoom")
    page.locator(".map canvas").press("+")
    assert page.evaluate("map.zoom") > before


def test_the_slider_orders_features_by_relevance(report, open_page):
    page = open_page(report)
    first = page.locator("#clusters tr.row").first
    page.evaluate(SLIDE, 0)
    assert "shop" not in first.locator(".chip").all_inner_texts()[:4]
    first.click()
    assert "usual" in page.locator(".card").inner_text()
    lifts = [float(text.split()[0]) for text in page.locator(".card .beside").all_inner_texts()]
    assert lifts == sorted(lifts, reverse=True)
    page.evaluate(SLIDE, 1)
    values = page.evaluate("described(cards[0]).map(one => one.value)")
    assert values == sorted(values, reverse=True)


def test_clusters_over_time_titles_and_stability(report, open_page):
    page = open_page(report)
    lines = page.locator("#times .line")
    assert lines.count() == 4  # three clusters and the axis
    counts = page.evaluate("cards.map(card => card.over_time.reduce((sum, count) => sum + count, 0))")
    assert counts == [40, 40, 40]
    page.locator("#clusters tr.row").first.click()
    assert "shop " in page.locator(".card .items").inner_text()  # a text stands for itself
    heads = page.locator("#clusters th").all_inner_texts()
    assert "Stability" in heads


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", list(SIZES))
def test_it_fits_the_screen_and_its_text_can_be_read(report, browser, size, scheme):
    context = browser.new_context(viewport=SIZES[size], color_scheme=scheme, offline=True)
    page = context.new_page()
    page.goto(report.resolve().as_uri())
    page.locator("#clusters tr.row").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size]["width"]
    ink, paper = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    assert contrast(ink, paper) >= 7
    for text in page.locator("figure svg text").all()[:20]:
        assert contrast(text.evaluate("node => getComputedStyle(node).fill"), paper) >= 4.5
    heights = page.evaluate(
        "[...document.querySelectorAll('figure svg text')].map(t => t.getBoundingClientRect().height)"
    )
    assert min(heights) >= 9
    context.close()


def contrast(one: str, other: str) -> float:
    """The ratio of luminances that WCAG asks for."""

    def luminance(color: str) -> float:
        parts = [int(part) / 255 for part in color[color.index("(") + 1 : -1].split(",")[:3]]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_measurements_are_named_by_what_is_low_and_high():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal([1.5, 300.0], 0.1, (40, 2)), rng.normal([4.5, 300.3], 0.1, (40, 2))])
    model = ExponentialFamilyMixture(2, family="gaussian", random_state=0).fit(X)
    first = {card.distinctive[0] for card in cluster_cards(model, feature_names=["petal length", "weight"])}
    assert {phrase.split()[-1] for phrase in first} == {"(low)", "(high)"}
    assert all(phrase.startswith("petal length") for phrase in first)


def test_columns_with_units_of_their_own_have_scales_of_their_own(tmp_path, open_page):
    """Incomes and categories in one table: an income is no share, and 59,900 is not written as 5.99e+04."""
    import pandas as pd

    rng = np.random.default_rng(0)
    incomes = np.concatenate([rng.normal(20_000, 500, 60), rng.normal(59_900, 500, 60)])
    frame = pd.DataFrame({"income": incomes, "plan": ["free", "basic"] * 30 + ["basic", "pro"] * 30})
    model = ExponentialFamilyMixture(2, family="mixed", random_state=0).fit(frame)
    page = open_page(write_report(tmp_path / "report.html", model))
    page.get_by_role("button", name="Open all on this page").click()
    text = page.locator("main").inner_text()
    assert "income 59,900 (high)" in text or "income 60,000 (high)" in text
    rows = page.locator(".feature", has_text="income")
    assert "%" not in rows.first.inner_text()
    assert "%" in page.locator(".feature", has_text="plan = basic").first.inner_text()
    widths = rows.locator(".fill").evaluate_all(
        "bars => bars.map(bar => parseFloat(bar.style.width)).sort((a, b) => a - b)"
    )
    assert widths[0] < 5
    assert widths[1] > 95


def test_logarithmic_axes_are_labeled_with_numbers(tmp_path, open_page):
    lines = [[f"word {cluster}", f"more {cluster}"] for cluster, n in enumerate((400, 60, 5)) for _ in range(n)]
    model = SphericalKMeans(3, random_state=0).fit(lines)
    page = open_page(write_report(tmp_path / "report.html", model))
    texts = page.locator("figure svg text").all_text_contents()
    assert {"10", "100"} <= set(texts)
    assert not any("$" in text or "mathdefault" in text for text in texts)


def test_labels_on_the_map_are_words_that_tell_clusters_apart(tmp_path, open_page):
    page = open_page(write_report(tmp_path / "report.html", *fitted_kinds()))
    made = page.evaluate(
        "labels(['tea, milk', 'tea, rum', 'made_from_the_leaves:green', 'made_from_the_leaves:black'])"
    )
    assert [each["words"][0] for each in made] == [
        "milk",
        "rum",
        "made_from_the_leaves:green",
        "made_from_the_leaves:black",
    ]
    assert page.evaluate("each => shortened(each, 12)", made[2]) == "…eaves:green"
    assert page.evaluate("each => shortened(each, 12)", made[0]) == "milk, tea"


def fitted_kinds():
    dataset = read({"tags": [["tea", "milk"], ["tea", "rum"]] * 5}, features="tags")
    return SphericalKMeans(2, random_state=0).fit(dataset), dataset
