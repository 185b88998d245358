"""Links between pages, to pictures and to headings lead somewhere; what is promised in README and pages is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if "_build" not in p.parts) + [
    ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
]
GENERATED = {DOCS / "commands.md"}
LINK = re.compile(r"(?<!`)!?\[[^\]]*\]\(([^)\s]+)\)")


def anchors_of(page: Path) -> set[str]:
    """Headings as MyST and GitHub spell them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    wrong = []
    for link in LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if target in GENERATED or target.parent.name == "_pictures":
            continue
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            wrong.append(link)
    assert not wrong


def test_every_page_is_in_the_contents():
    """A page nobody can reach is no page."""
    named = set()
    for page in PAGES:
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for entry in block.splitlines():
                if entry and not entry.startswith(":"):
                    named |= {p.resolve() for p in page.parent.glob(f"{entry}.md")}
    pages = {p.resolve() for p in PAGES if DOCS in p.parents and p.name != "conf.py"}
    assert pages - named == {DOCS / "index.md"}
