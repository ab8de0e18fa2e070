"""What the generators of the shipped pools share: writing frozen, seeded JSON Lines."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from harness.canonical import canonical
from harness.records import Record


def lines(records: Iterable[Record]) -> bytes:
    """Records as JSON Lines, None left out, so that a person can read them."""
    return b"".join(canonical(record.model_dump(mode="json", exclude_none=True)) + b"\n" for record in records)


def write(folder: str, name: str, records: Iterable[Record]) -> None:
    """Write a pool beside its generator."""
    (Path(folder).parent / name).write_bytes(lines(records))
