"""Structured logs: one JSON object a line on standard error; edits also into the folder's audit.log."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from pathlib import Path


class JsonLines(logging.Formatter):
    """Each record as one line of JSON; line breaks in messages cannot start another."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON."""
        facts = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            facts["traceback"] = self.formatException(record.exc_info)
        return json.dumps(facts, default=str)


def set_up_logs(folder: Path | None, level: str = "info") -> None:
    """Send the service's logs to standard error, and edits to ``audit.log`` in the folder."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("shoal", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level.upper())
        logger.propagate = False
    logging.getLogger("uvicorn").setLevel("WARNING")
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        audit = logging.FileHandler(folder / "audit.log", encoding="utf-8", delay=True)
        audit.setFormatter(JsonLines())
        logging.getLogger("shoal.audit").handlers = [audit]
