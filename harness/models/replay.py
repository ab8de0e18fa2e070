"""`replay/<path>`: answers from the journal of an earlier run, and refuses a request that it does not hold."""

from __future__ import annotations

import io
import json
from functools import cache
from pathlib import Path
from typing import Any

from harness.canonical import digest
from harness.errors import SetupError, Symptom
from harness.records import Context, Fault, ModelSpec, RawReply, Request, TokenLogprobs

FIELDS = ("finish", "model_served", "tokens_in", "tokens_out", "tokens_cached", "tokens_reasoning", "usage_complete")


def journal_of(spec: ModelSpec, folder: Path) -> Path:
    """The journal behind a `replay/...` name: a results folder's, or the file itself; relative to the study, then to here.

    Raises:
        SetupError: there is none.
    """
    name = spec.name.removeprefix("replay/")
    for root in (folder / name, Path(name)):
        for path in (root, root / "journal.jsonl", root / "journal.jsonl.zst"):
            if path.is_file():
                return path
    raise SetupError(f"{spec.name}: no journal there (a results folder, or its journal.jsonl)")


@cache
def receipts(path: Path) -> dict[tuple[str, str, str], dict[str, Any]]:
    """(owner, purpose, request hash) -> the last receipt with a reply."""
    data = path.read_bytes()
    if path.suffix == ".zst":
        import zstandard

        data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    found = {}
    for line in io.BytesIO(data):
        record = json.loads(line)["record"]
        if record["kind"] == "call" and record["fault"] is None:
            found[record["owner"], record["purpose"], record["request_sha256"]] = record
    return found


async def complete(spec: ModelSpec, request: Request, context: Context, folder: Path) -> RawReply:
    """One attempt, from the journal."""
    held = receipts(journal_of(spec, folder)).get((context.owner, context.purpose, digest(request)))
    if held is None:
        message = f"the journal holds no reply to this request of {context.owner} {context.purpose}"
        return RawReply(fault=Fault(symptom=Symptom.not_in_replay, message=message))
    logprobs = held.get("logprobs")
    return RawReply(
        text=held["reply"],
        reasoning_text=held.get("reasoning_text"),
        logprobs=tuple(TokenLogprobs.model_validate(one) for one in logprobs) if logprobs else None,
        **{field: held[field] for field in FIELDS},
    )
