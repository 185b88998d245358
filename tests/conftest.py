"""Shared by every test: a steady numpy seed policy is each test's own business; this file only sets the stage."""

from __future__ import annotations

import shutil
import signal
import threading

import pytest
from hypothesis import HealthCheck, settings

# Kernels compile on first use, which is no fault of the case under test.
settings.register_profile("shoal", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shoal")

# A shell starts what it runs in the background with Ctrl-C ignored; tests of Ctrl-C want it heard there, too.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

MAC_CHROME = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
QUIET += ["--disable-component-update", "--disable-sync"]


@pytest.fixture(scope="session")
def browser():
    """A real browser: Debian's chromium, or the Chrome that is there, driven by playwright. One in a process."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome", MAC_CHROME)
    found = next((path for name in names if (path := shutil.which(name))), None)
    assert found, "no Chromium or Chrome: 'make browser' installs one"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=QUIET)
        yield browser
        browser.close()
