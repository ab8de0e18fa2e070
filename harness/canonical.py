"""Canonical JSON and its SHA-256: the one way in which fairtrial turns a value into bytes that are hashed or written.

UTF-8 with everything outside ASCII escaped (lone surrogates too), keys sorted, no blanks, no NaN.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from pydantic import BaseModel, JsonValue


def plain(value: BaseModel | JsonValue) -> JsonValue:
    """A record as JSON values; anything else as it is."""
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


def canonical(value: BaseModel | JsonValue) -> bytes:
    """The canonical bytes of a record or JSON value, without a newline.

    Raises:
        ValueError: the value holds NaN or an infinity.
    """
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def sha256(data: bytes) -> str:
    """SHA-256 of bytes, as 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def digest(value: BaseModel | JsonValue) -> str:
    """SHA-256 of the canonical bytes of a record or JSON value."""
    return sha256(canonical(value))


def digest_set(digests: Iterable[str]) -> str:
    """One hash over a set of hashes, whatever their order: a pool's is over its sorted task hashes."""
    return sha256("\n".join(sorted(digests)).encode("ascii"))


def seed_of(*parts: str | int) -> int:
    """A 63-bit seed from names: the first 8 bytes of SHA-256 over the parts, so that no position can matter."""
    name = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:8], "big") >> 1
