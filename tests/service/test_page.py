"""The page in a real browser: explore, suggest, live, timeline, edits; desktop and phone, light and dark."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from service.samples import items, learned, new_model, running
from shoal import SphericalKMeans

SIZES = {"desktop": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}
VIEWS = ("explore", "suggest", "live", "timeline", "edits")


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with running(tmp_path_factory.mktemp("page"), new_model("bernoulli")) as client:
        learned(client, items(400))
        yield client


@pytest.fixture
def open_view(browser, client):
    """Open a view; fail on any error in the console and any request that leaves the service."""
    opened, troubles = [], []

    def open_(view="explore", size="desktop", scheme="light", url=None):
        url = url or client.url
        context = browser.new_context(viewport=SIZES[size], color_scheme=scheme, has_touch=size == "phone")
        page = context.new_page()
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda message: troubles.append(message.text) if is_trouble(message) else None)
        page.on("response", lambda answer: troubles.append(answer.url) if is_refusal(answer) else None)
        page.on(
            "request", lambda request: None if request.url.startswith((url, "blob:")) else troubles.append(request.url)
        )
        page.set_default_timeout(60_000)
        page.goto(f"{url}/#/{view}")
        opened.append(context)
        return page

    yield open_
    for context in opened:
        context.close()
    assert troubles == []


def is_trouble(message):
    return message.type == "error" and not message.text.startswith("Failed to load resource")


def is_refusal(answer):
    """Only questions about what is not there may be refused."""
    return answer.status >= 400 and not answer.url.endswith("/suggest")


def rows(page):
    return page.locator("table.list tbody tr")


def test_explore_search_and_read_a_card(open_view):
    page = open_view()
    rows(page).first.wait_for()
    assert rows(page).count() >= 4
    page.get_by_label("Search").fill("g2w1")
    page.wait_for_function("() => document.querySelectorAll('table.list tbody tr').length === 1")
    rows(page).first.get_by_role("button").click()
    card = page.get_by_label("Cluster", exact=True)
    card.get_by_text("Typical items").wait_for()
    assert "g2w" in card.inner_text()
    assert "cluster=" in page.url
    page.reload()
    page.get_by_label("Cluster", exact=True).get_by_text("Typical items").wait_for()
    page.get_by_label("Search").fill("nothing has this")
    page.get_by_text("No cluster matches.").wait_for()


def test_on_a_phone_a_card_takes_the_place_of_the_list(open_view):
    page = open_view(size="phone")
    rows(page).first.get_by_role("button").click()
    page.get_by_text("Typical items").wait_for()
    assert not page.locator("table.list").is_visible()
    page.get_by_role("button", name="All clusters").click()
    rows(page).first.wait_for()
    assert "cluster=" not in page.url


def test_the_map_is_drawn_and_chosen_from_by_pointer_and_moved_by_keys(open_view):
    page = open_view()
    rows(page).first.wait_for()
    page.wait_for_function("""() => {
        const canvas = document.querySelector('canvas'), pen = canvas.getContext('2d');
        const seen = new Set(new Uint32Array(pen.getImageData(0, 0, canvas.width, canvas.height).data.buffer));
        return seen.size > 3 }""")
    box = page.locator("canvas").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.25, box["y"] + box["height"] * 0.5)
    page.locator("canvas").press("+")
    page.locator("canvas").press("ArrowLeft")
    page.get_by_label("Whole map").click()


def test_suggestions_change_when_one_is_accepted_or_rejected(open_view):
    page = open_view("suggest")
    page.get_by_label("Feature").fill("g1w0")
    page.locator("datalist option[value=g1w0]").wait_for(state="attached")
    page.get_by_role("button", name="Add").click()
    first = page.locator(".suggestion b").first
    first.wait_for()
    refused = first.inner_text()
    assert "%" in page.locator(".suggestion").first.inner_text()
    page.get_by_label(f"Reject {refused}", exact=True).click()
    page.wait_for_function("name => document.querySelector('.suggestion b').textContent !== name", arg=refused)
    accepted = first.inner_text()
    page.get_by_label(f"Accept {accepted}", exact=True).click()
    page.get_by_label("Given").get_by_text(accepted).wait_for()
    assert refused not in page.locator(".suggestion b").all_inner_texts()
    assert f"with={accepted}" in page.url
    page.get_by_label("Feature").fill("no such feature")
    page.get_by_role("button", name="Add").click()
    page.get_by_text("is not in the vocabulary").or_(page.get_by_text("no feature")).first.wait_for()


def test_a_cluster_is_named_merged_and_undone_with_the_keyboard(tmp_path, open_view):
    with running(tmp_path, new_model("bernoulli")) as client:
        learned(client, items(200))
        page = open_view(url=client.url)
        rows(page).first.get_by_role("button").press("Enter")
        page.get_by_role("button", name="Name", exact=True).press("Enter")
        page.keyboard.type("<b>mine</b>")
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="<b>mine</b>").wait_for()
        before = rows(page).count()
        other = client.get("/clusters").json()["clusters"][1]["id"]
        page.get_by_role("button", name="Merge", exact=True).click()
        page.get_by_label("Their ids").fill(str(other))
        page.keyboard.press("Enter")
        page.get_by_text("remembered items moved").wait_for()
        page.wait_for_function("n => document.querySelectorAll('table.list tbody tr').length === n", arg=before - 1)
        page.get_by_role("button", name="Undo").click()
        page.wait_for_function("n => document.querySelectorAll('table.list tbody tr').length === n", arg=before)
        page.goto(client.url + "/#/edits")
        page.get_by_text("(undone)").wait_for()


def test_an_item_arrives_and_a_cluster_is_born_while_somebody_watches(tmp_path, open_view):
    with running(tmp_path, new_model("kmeans")) as client:
        page = open_view("live", url=client.url)
        page.get_by_text("Connected.").wait_for()
        page.get_by_text("Waiting for items").wait_for()
        learned(client, items(60))
        page.get_by_label("Items").get_by_text("item-59").wait_for()
        page.get_by_label("Events").get_by_text("birth").first.wait_for()


def test_without_clusters_the_page_says_so(tmp_path, open_view):
    with running(tmp_path, new_model("kmeans")) as client:
        page = open_view(url=client.url)
        page.get_by_text("No clusters yet").wait_for()
        page.goto(client.url + "/#/timeline")
        page.get_by_text("Nothing has been learned").wait_for()


def test_ten_thousand_clusters_stay_smooth(tmp_path, open_view):
    import scipy.sparse as sp

    X = sp.random(12_000, 3000, density=0.003, format="csr", random_state=0)
    X = X[X.getnnz(axis=1) > 0]
    model = SphericalKMeans(10_000, init="random", n_init=1, algorithm="exact", max_iter=1, random_state=0).fit(X)
    with running(tmp_path, model) as client:
        page = open_view(url=client.url)
        page.get_by_text(re.compile("of 10,000 clusters")).wait_for(timeout=120_000)
        milliseconds = page.evaluate("""async () => {
            const canvas = document.querySelector('canvas'), began = performance.now();
            for (let step = 0; step < 20; step++) {
                canvas.dispatchEvent(new KeyboardEvent('keydown', { key: step % 2 ? '+' : 'ArrowLeft' }));
                await new Promise(requestAnimationFrame);
                await new Promise(requestAnimationFrame);
            }
            return (performance.now() - began) / 20 }""")
        assert milliseconds < 500


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_every_view_is_accessible_and_pictured(open_view, axe, tmp_path, size, scheme):
    """Pictures are kept in SHOAL_SCREENSHOTS, if that is set, to be looked at."""
    folder = Path(os.environ.get("SHOAL_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    page = open_view("explore", size, scheme)
    rows(page).first.get_by_role("button").click()
    page.get_by_text("Typical items").wait_for()
    for view in VIEWS:
        if view != "explore":
            link = "suggest?with=g1w0" if view == "suggest" else view
            page.goto(f"{page.url.split('#')[0]}#/{link}")
            page.locator({"suggest": ".suggestion", "live": ".figures dd"}.get(view, "h2")).first.wait_for()
        page.screenshot(path=folder / f"{view}-{size}-{scheme}.png", full_page=True)
        page.evaluate(axe)
        found = page.evaluate("axe.run(document).then(found => found.violations)")
        serious = [
            f"{one['id']}: {one['nodes'][0]['html']}" for one in found if one["impact"] in ("serious", "critical")
        ]
        assert serious == [], view
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth + 1"), (
            f"{view} is wider than the window"
        )
