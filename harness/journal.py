"""The journal of a run: append-only, hash-chained, crash-safe JSON Lines.

A line is `{"hash":"<64 hex>","record":{...}}` and a newline byte. The hash is SHA-256 over the hash of the line before
and the exact bytes of the record; the first line continues the genesis, which is the hash of frozen.json's bytes. So
nothing can be changed, dropped, doubled or moved without breaking the chain at that line. The last line, the seal, holds the hash
of the line before it: the root that a report prints. What the chain cannot show is a consistent forgery of the whole.
"""

from __future__ import annotations

import io
import json
import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from harness.canonical import canonical, sha256
from harness.errors import LockedError, ResultsError
from harness.records import Entry, Note, Record, Seal

_PREFIX = b'{"hash":"'
_MIDDLE = b'","record":'
_HEAD = len(_PREFIX) + 64 + len(_MIDDLE)
_ENTRY: TypeAdapter[Entry] = TypeAdapter(Entry)


def now() -> str:
    """The time, UTC, ISO 8601 with milliseconds and `Z`."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def envelope(previous: str, record: Record) -> tuple[str, bytes]:
    """A record as one journal line: its chain hash, and the bytes with their newline."""
    body = canonical(record)
    link = sha256(previous.encode("ascii") + body)
    return link, _PREFIX + link.encode("ascii") + _MIDDLE + body + b"}\n"


def opened(line: bytes, previous: str, place: str) -> tuple[str, bytes]:
    """The chain hash and the record's bytes of one line, checked against the line before.

    Raises:
        ResultsError: the line is damaged or does not continue the chain; names the place.
    """
    if not (line.startswith(_PREFIX) and line[_HEAD - len(_MIDDLE) : _HEAD] == _MIDDLE and line.endswith(b"}\n")):
        raise ResultsError(f"{place}: damaged line: it is not of the form of a receipt")
    body = line[_HEAD:-2]
    link = line[len(_PREFIX) : len(_PREFIX) + 64].decode("ascii", "replace")
    expected = sha256(previous.encode("ascii") + body)
    if link != expected:
        raise ResultsError(
            f"{place}: the line does not continue the chain of hashes: it says {link[:12]}, its content gives {expected[:12]}. "
            "It, or something before it, was changed, removed or moved after it was written"
        )
    return link, body


class Log(NamedTuple):
    """A journal as read and checked."""

    entries: tuple[Entry, ...]
    root: str
    """Chain hash of the last whole line; the genesis where there is none."""
    sealed: bool
    torn: int
    """Bytes of an unfinished last line: the writer was killed in the middle of it."""
    size: int
    """Bytes up to the end of the last whole line."""


def _record(body: bytes, place: str) -> Entry:
    try:
        return _ENTRY.validate_python(json.loads(body))
    except (ValidationError, ValueError, RecursionError) as error:
        raise ResultsError(f"{place}: not a record that this version knows: {error}") from error


def stream(source: io.BufferedIOBase, genesis: str, name: str) -> Iterator[tuple[Entry | None, str, int]]:
    """Each line of an open journal as (record, chain hash, bytes); a torn last line as (None, last hash, bytes).

    Raises:
        ResultsError: a damaged line, named by its number; a line after the seal.
    """
    link, sealed = genesis, False
    for number, line in enumerate(source, 1):
        place = f"{name}:{number}"
        if sealed:
            raise ResultsError(f"{place}: a line after the seal; a sealed run is never written again")
        if not line.endswith(b"\n"):
            yield None, link, len(line)
            return
        before = link
        link, body = opened(line, before, place)
        entry = _record(body, place)
        if isinstance(entry, Seal):
            if entry.root != before or entry.lines != number - 1:
                raise ResultsError(f"{place}: the seal does not fit the {number - 1} lines before it")
            sealed = True
        yield entry, link, len(line)


def read(path: Path, genesis: str) -> Log:
    """Read and check a whole journal; `.zst` is unpacked on the way. A missing file is an empty journal.

    Raises:
        ResultsError: see `stream`.
    """
    if not path.exists():
        return Log((), genesis, False, 0, 0)
    entries: list[Entry] = []
    root, torn, size = genesis, 0, 0
    with _opened(path) as source:
        for entry, link, length in stream(source, genesis, path.name):
            if entry is None:
                torn = length
            else:
                entries.append(entry)
                root, size = link, size + length
    return Log(tuple(entries), root, bool(entries) and isinstance(entries[-1], Seal), torn, size)


def _opened(path: Path) -> io.BufferedIOBase:
    if path.suffix != ".zst":
        return path.open("rb")
    import zstandard

    try:
        return io.BytesIO(zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes()))
    except zstandard.ZstdError as error:
        raise ResultsError(f"{path}: damaged: it cannot be unpacked ({error})") from error


class Writer:
    """The single writer of a journal. Every append is on the disk before it returns.

    A torn last line is cut off and noted. A second writer is refused with the holder's name. The lock is the
    operating system's, so that one whose holder died is free, and one whose holder lives cannot be taken.
    """

    def __init__(self, folder: Path, genesis: str) -> None:
        """
        Raises:
            LockedError: another process writes here; names it.
            ResultsError: the journal is damaged, or sealed.
        """
        self._lock = _Lock(folder)
        try:
            self.log = read(folder / "journal.jsonl", genesis)
            if self.log.sealed:
                raise ResultsError(f"{folder}: this run is sealed and is never written again; `--again` starts another")
            self._file = (folder / "journal.jsonl").open("ab", buffering=0)
            self._link, self.lines, self._size = self.log.root, len(self.log.entries), self.log.size
            if self.log.torn:
                self._file.truncate(self.log.size)
                self.append(
                    Note(about="repair", text=f"cut off an unfinished last line of {self.log.torn} bytes", at=now())
                )
        except BaseException:
            self._lock.release()
            raise

    def append(self, record: Record) -> None:
        """Write one record and wait until the disk has it.

        Raises:
            ResultsError: the disk is full or failing; what could not be written whole is cut off again.
        """
        link, line = envelope(self._link, record)
        try:
            written = self._file.write(line)
            if written != len(line):
                raise OSError(f"{written} of {len(line)} bytes written")
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.truncate(self._size)
            raise ResultsError(
                f"{self._file.name}: cannot write ({error.strerror or error}); what was written before is safe. "
                "Free some space and start the same command again"
            ) from error
        self._link, self.lines, self._size = link, self.lines + 1, self._size + len(line)

    def seal(self) -> str:
        """Close the journal for good; returns the root: the chain hash of the seal itself, which covers every line."""
        self.append(Seal(root=self._link, lines=self.lines, at=now()))
        return self._link

    def close(self) -> None:
        self._file.close()
        self._lock.release()

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Lock:
    def __init__(self, folder: Path) -> None:
        from filelock import FileLock, Timeout

        self._lock = FileLock(folder / "writer.lock")
        self._holder = folder / "writer.json"
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise LockedError(
                f"{folder}: another process is writing there: {self._named()}. Wait for it, or end it"
            ) from None
        me = {"pid": os.getpid(), "host": socket.gethostname(), "since": now()}
        self._holder.write_text(json.dumps(me), encoding="utf-8")

    def _named(self) -> str:
        try:
            holder = json.loads(self._holder.read_text(encoding="utf-8"))
            return f"pid {holder['pid']} on {holder['host']} since {holder['since']}"
        except (OSError, ValueError, KeyError):
            return "it has not written its name yet"

    def release(self) -> None:
        self._holder.unlink(missing_ok=True)
        self._lock.release()
