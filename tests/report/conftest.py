"""A real browser: Debian's chromium, or the Chrome that is there, driven by playwright."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

MAC_CHROME = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
QUIET += ["--disable-component-update", "--disable-sync"]


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome", MAC_CHROME)
    found = next((path for name in names if (path := shutil.which(name))), None)
    assert found, "no Chromium or Chrome: 'make browser' installs one"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser):
    """Open a file with the network off; fail on any error in the page's console or any request that leaves it."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True)
    page = context.new_page()
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
    page.on(
        "request", lambda request: None if request.url.startswith(("file:", "data:")) else troubles.append(request.url)
    )

    def open_file(path: Path):
        page.goto(path.resolve().as_uri())
        return page

    yield open_file
    context.close()
    assert troubles == []
