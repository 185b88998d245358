"""Bearer tokens: who may write, and who may read."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from shoal.errors import BadInput, BadSource

SHORTEST = 16


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


@dataclass(frozen=True)
class Tokens:
    """The access tokens of a service, stored as digests.

    Parameters
    ----------
    write, read : tuple of bytes
        Digests of the tokens for writing (and reading), and for reading only; see ``Tokens.of``.
    protect_reads : bool
        Whether reading requires a token.

    Examples
    --------
    >>> tokens = Tokens.of(write=["a-long-secret-token"], read=["another-long-token"])
    >>> tokens.grants("Bearer a-long-secret-token"), tokens.grants("Bearer another-long-token"), tokens.grants(None)
    ('write', 'read', '')
    """

    write: tuple[bytes, ...] = ()
    read: tuple[bytes, ...] = ()
    protect_reads: bool = field(default=False)

    @classmethod
    def of(cls, write: Iterable[str] = (), read: Iterable[str] = (), *, protect_reads: bool = False) -> Tokens:
        """From the tokens themselves."""
        for token in (*write, *read):
            if len(token) < SHORTEST or token.split() != [token]:
                raise BadInput(
                    f"a token has {len(token)} characters or holds blanks; use {SHORTEST} or more without blanks, for "
                    "example from: python -c 'import secrets; print(secrets.token_urlsafe())'"
                )
        return cls(tuple(map(_digest, write)), tuple(map(_digest, read)), protect_reads)

    @classmethod
    def from_surroundings(cls, file: Path | None = None, *, protect_reads: bool = False) -> Tokens:
        """From a file with a line for each token ("read TOKEN" or "write TOKEN"), and from SHOAL_TOKEN and
        SHOAL_READ_TOKEN in the environment."""
        write: list[str] = []
        read: list[str] = []
        if file is not None:
            try:
                lines = file.read_text(encoding="utf-8").splitlines()
            except OSError as error:
                raise BadSource(f"cannot read the tokens in {file}: {error.strerror}.") from None
            for number, line in enumerate(lines, start=1):
                words = line.split()
                if not words or words[0].startswith("#"):
                    continue
                if len(words) > 2 or (len(words) == 2 and words[0] not in ("read", "write")):
                    raise BadInput(f"{file}, line {number}: write 'read TOKEN', 'write TOKEN' or the token alone.")
                (read if words[0] == "read" and len(words) == 2 else write).append(words[-1])
        write += [os.environ["SHOAL_TOKEN"]] if os.environ.get("SHOAL_TOKEN") else []
        read += [os.environ["SHOAL_READ_TOKEN"]] if os.environ.get("SHOAL_READ_TOKEN") else []
        return cls.of(write, read, protect_reads=protect_reads)

    def __bool__(self) -> bool:
        return bool(self.write or self.read)

    def grants(self, authorization: str | None) -> str:
        """ "write", "read" or "" for an Authorization header; it takes as long for any token, right or wrong."""
        scheme, _, token = (authorization or "").partition(" ")
        given = _digest(token.strip())
        may_write = sum(hmac.compare_digest(given, known) for known in self.write)
        may_read = sum(hmac.compare_digest(given, known) for known in self.read)
        if scheme.lower() != "bearer":
            return ""
        return "write" if may_write else "read" if may_read else ""
