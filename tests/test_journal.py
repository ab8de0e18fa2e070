"""The journal: chained, crash-safe, one writer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import journal
from harness.errors import LockedError, ResultsError
from harness.records import Note, Seal

GENESIS = "0" * 64


def note(text: str) -> Note:
    return Note(about="resumed", text=text, at="2026-12-01T00:00:00.000Z")


def written(folder: Path, texts: list[str], *, seal: bool = False) -> Path:
    with journal.Writer(folder, GENESIS) as writer:
        for text in texts:
            writer.append(note(text))
        if seal:
            writer.seal()
    return folder / "journal.jsonl"


def test_what_was_appended_is_read_back_in_order(tmp_path: Path) -> None:
    """Texts with line separators, NUL, lone surrogates and emoji survive, one line each."""
    texts = ["a", "\u2028", "x\x00y", "\ud800", "}{", "\n\r", "😀"]
    log = journal.read(written(tmp_path, texts, seal=True), GENESIS)
    assert [entry.text for entry in log.entries[:-1]] == texts
    assert log.sealed
    assert log.torn == 0


def test_the_seal_holds_the_hash_of_the_line_before_it(tmp_path: Path) -> None:
    """The root that a report prints covers every line before the seal."""
    path = written(tmp_path, ["a", "b"], seal=True)
    log = journal.read(path, GENESIS)
    seal = log.entries[-1]
    assert isinstance(seal, Seal)
    assert seal.root == json.loads(path.read_bytes().splitlines()[1])["hash"]
    assert seal.lines == 2


def test_a_torn_last_line_is_cut_off_and_noted(tmp_path: Path) -> None:
    """A writer killed in the middle of a line loses that line alone, and the next one says so."""
    path = written(tmp_path, ["a", "b"])
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"hash":"12')
    assert journal.read(path, GENESIS).torn == 11
    written(tmp_path, ["c"])
    log = journal.read(path, GENESIS)
    assert [entry.about for entry in log.entries] == ["resumed", "resumed", "repair", "resumed"]
    assert path.read_bytes().startswith(whole)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(position=st.integers(0, 10_000), flip=st.integers(1, 255))
def test_any_flipped_byte_before_the_end_is_refused_with_its_line(
    tmp_path_factory: pytest.TempPathFactory, position: int, flip: int
) -> None:
    """No byte of a sealed journal can change unseen; the message names a line at or after it."""
    folder = tmp_path_factory.mktemp("j")
    path = written(folder, ["alpha", "beta", "gamma"], seal=True)
    data = bytearray(path.read_bytes())
    position %= len(data) - 1
    data[position] ^= flip
    path.write_bytes(bytes(data))
    line = bytes(data[:position]).count(b"\n") + 1
    with pytest.raises(ResultsError, match=r"journal\.jsonl:\d+") as caught:
        journal.read(path, GENESIS)
    named = int(str(caught.value).split("journal.jsonl:")[1].split(":")[0])
    assert named in (line, line + 1)


@pytest.mark.parametrize("change", ["delete", "double", "swap", "insert"])
def test_moved_lines_are_refused(tmp_path: Path, change: str) -> None:
    """A line deleted, doubled, swapped or inserted breaks the chain."""
    path = written(tmp_path, ["a", "b", "c"], seal=True)
    lines = path.read_bytes().splitlines(keepends=True)
    changed = {
        "delete": lines[:1] + lines[2:],
        "double": [*lines[:2], lines[1], *lines[2:]],
        "swap": [lines[1], lines[0], *lines[2:]],
        "insert": [lines[0], journal.envelope(GENESIS, note("x"))[1], *lines[1:]],
    }[change]
    path.write_bytes(b"".join(changed))
    with pytest.raises(ResultsError, match="chain"):
        journal.read(path, GENESIS)


def test_another_genesis_is_refused(tmp_path: Path) -> None:
    """A journal belongs to one manifest."""
    path = written(tmp_path, ["a"])
    with pytest.raises(ResultsError, match=r"journal\.jsonl:1"):
        journal.read(path, "1" * 64)


def test_nothing_may_follow_a_seal(tmp_path: Path) -> None:
    """A sealed run is never written again, and a line added by hand is refused."""
    path = written(tmp_path, ["a"], seal=True)
    with pytest.raises(ResultsError, match="sealed"):
        journal.Writer(tmp_path, GENESIS)
    link = json.loads(path.read_bytes().splitlines()[-1])["hash"]
    path.write_bytes(path.read_bytes() + journal.envelope(link, note("late"))[1])
    with pytest.raises(ResultsError, match="after the seal"):
        journal.read(path, GENESIS)


def test_a_record_of_an_unknown_kind_is_named(tmp_path: Path) -> None:
    """A well-chained line that is no record of this version is refused with its place."""
    import hashlib

    body = b'{"kind":"nonsense"}'
    link = hashlib.sha256(GENESIS.encode() + body).hexdigest()
    (tmp_path / "journal.jsonl").write_bytes(b'{"hash":"' + link.encode() + b'","record":' + body + b"}\n")
    with pytest.raises(ResultsError, match=r"journal\.jsonl:1: not a record"):
        journal.read(tmp_path / "journal.jsonl", GENESIS)


def test_a_second_writer_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    """The holder is named by pid and host; a holder that died is no obstacle."""
    code = (
        "import sys,time; from pathlib import Path; from harness import journal\n"
        f"w = journal.Writer(Path({str(tmp_path)!r}), '0'*64); print('held', flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline().strip() == "held"
        with pytest.raises(LockedError, match=f"pid {child.pid} on "):
            journal.Writer(tmp_path, GENESIS)
    finally:
        child.kill()
        child.wait()
        assert child.stdout is not None
        child.stdout.close()
    written(tmp_path, ["after"])
    assert (tmp_path / "writer.json").exists() is False


def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """A line that cannot be written whole is cut off again, and the error says what to do."""
    import resource
    import signal

    path = written(tmp_path, ["a" * 100])
    size = path.stat().st_size
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with journal.Writer(tmp_path, GENESIS) as writer:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50, old[1]))
            with pytest.raises(ResultsError, match="cannot write"):
                writer.append(note("b" * 500))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.stat().st_size == size
    assert len(journal.read(path, GENESIS).entries) == 1


def test_a_packed_journal_reads_like_a_plain_one(tmp_path: Path) -> None:
    """Published runs are read as they are; a damaged pack is refused."""
    import zstandard

    path = written(tmp_path, ["a", "b"], seal=True)
    packed = tmp_path / "journal.jsonl.zst"
    packed.write_bytes(zstandard.ZstdCompressor().compress(path.read_bytes()))
    assert journal.read(packed, GENESIS) == journal.read(path, GENESIS)
    packed.write_bytes(b"no pack at all")
    with pytest.raises(ResultsError, match="unpacked"):
        journal.read(packed, GENESIS)
