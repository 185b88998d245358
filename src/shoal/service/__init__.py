"""A service that learns: assign, suggest, learn and explore over HTTP, losing nothing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "Client": "shoal.service.client",
    "Limits": "shoal.service.limits",
    "Service": "shoal.service.service",
    "Tokens": "shoal.service.tokens",
    "create_app": "shoal.service.app",
    "serving": "shoal.service.server",
}
__all__ = ["Client", "Limits", "Service", "Tokens", "create_app", "serving"]

if TYPE_CHECKING:
    from shoal.service.app import create_app as create_app
    from shoal.service.client import Client as Client
    from shoal.service.limits import Limits as Limits
    from shoal.service.server import serving as serving
    from shoal.service.service import Service as Service
    from shoal.service.tokens import Tokens as Tokens


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'shoal.service' has no attribute {name!r}")
    try:
        return getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if error.name in ("fastapi", "uvicorn", "httpx", "starlette", "pydantic"):
            from shoal.errors import MissingExtra

            raise MissingExtra(f"{error.name} is not installed. Run: pip install 'shoal[service]'") from None
        raise
