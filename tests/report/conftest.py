"""Pages opened in the browser, with the network off."""

from __future__ import annotations

from pathlib import Path

import pytest


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
