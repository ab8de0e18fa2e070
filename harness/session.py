"""One run's calls: budget, slot, receipt before and after, our own retries. Whatever asks a model asks through here."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from pydantic import JsonValue

from harness import journal
from harness.canonical import digest, plain, seed_of
from harness.errors import (
    SYMPTOMS,
    AskError,
    Cause,
    Retry,
    StoppedError,
    Symptom,
    TrialError,
)
from harness.models import Models, kind_of
from harness.records import (
    Answered,
    Bucket,
    Budget,
    Call,
    Context,
    Entry,
    Failed,
    Fault,
    Frozen,
    Message,
    ModelSpec,
    Note,
    Outcome,
    Price,
    RawReply,
    Reply,
    Request,
    Started,
    Use,
)

BACKOFF_SECONDS = 0.5
BACKOFF_CEILING_SECONDS = 60.0


class Purse:
    """The budget of a study, kept by reservation: a call that could overshoot a cap is not made."""

    def __init__(self, budget: Budget, prices: dict[str, Price | None]) -> None:
        self.budget, self.prices = budget, prices
        self.calls, self.tokens_out, self.usd = 0, 0, 0.0

    def reserve(self, model: str, request: Request) -> tuple[int, float]:
        """Set aside the most that a request can cost: (output tokens, dollars).

        Raises:
            StoppedError: a cap would be passed; names it.
        """
        usd = self._most(model, request)
        for name, cap, value in (
            ("calls", self.budget.calls, self.calls + 1),
            ("tokens_out", self.budget.tokens_out, self.tokens_out + request.max_tokens),
            ("usd", self.budget.usd, self.usd + usd),
        ):
            if cap is not None and value > cap + 1e-12:
                raise StoppedError(
                    f"budget.{name}: the next call could bring the study to {value:g} and the cap is {cap:g}. All receipts are "
                    "kept; raise the cap in the study file and start the same command again, or end the run with `--close`"
                )
        self.calls, self.tokens_out, self.usd = self.calls + 1, self.tokens_out + request.max_tokens, self.usd + usd
        return request.max_tokens, usd

    def settle(self, reserved: tuple[int, float], tokens_out: int | None, usd: float | None) -> None:
        """Put back what a finished call did not use. What is unknown stays reserved."""
        if tokens_out is not None:
            self.tokens_out += tokens_out - reserved[0]
        if usd is not None:
            self.usd += usd - reserved[1]

    def recall(self, entries: Iterable[Entry]) -> None:
        """Count what a journal already holds; an orphan and an unknown usage at their cap."""
        known = {e.id: e for e in entries if isinstance(e, Call)}
        for entry in entries:
            if isinstance(entry, Started):
                call = known.get(entry.id)
                self.calls += 1
                self.tokens_out += entry.max_tokens if call is None or call.tokens_out is None else call.tokens_out
                self.usd += (call.cost_usd if call else None) or 0.0

    def _most(self, model: str, request: Request) -> float:
        price = self.prices.get(model)
        if price is None or price.tokens_in is None or price.tokens_out is None:
            return 0.0
        # A token is at least one byte, so the bytes of a prompt bound its tokens.
        size = sum(len(message.text.encode("utf-8", "surrogatepass")) + 16 for message in request.messages)
        return size * price.tokens_in + request.max_tokens * price.tokens_out


def cost(price: Price | None, raw: RawReply) -> float | None:
    """Dollars of one attempt from the frozen price row; None when a part of it is unknown."""
    if price is None or price.tokens_in is None or price.tokens_out is None:
        return None
    if raw.tokens_in is None or raw.tokens_out is None or not raw.usage_complete:
        return 0.0 if price.tokens_in == price.tokens_out == 0 else None
    cached = raw.tokens_cached or 0
    cached_price = price.tokens_in if price.tokens_cached is None else price.tokens_cached
    return (raw.tokens_in - cached) * price.tokens_in + cached * cached_price + raw.tokens_out * price.tokens_out


class Errand(NamedTuple):
    """One call to be made: who asks for what, and what the receipt says of it."""

    owner: str
    purpose: str
    role: str
    model: str
    request: Request
    template: tuple[Message, ...] | None
    saw: dict[str, str]
    bucket: Bucket
    context: Callable[[int], Context]
    """Finished attempts -> what a scripted model may know."""


class Session:
    """One run's doors, receipts and limits. `stop` holds why no further call may begin."""

    def __init__(self, frozen: Frozen, writer: journal.Writer, models: Models, specs: dict[str, ModelSpec]) -> None:
        self.frozen, self.writer, self.models, self.specs = frozen, writer, models, specs
        self.purse = Purse(frozen.study.budget, frozen.prices)
        self.slots = {
            name: asyncio.Semaphore(spec.concurrency or (1 if kind_of(spec.name) == "embedded" else 8))
            for name, spec in specs.items()
        }
        self.stop: str | None = None
        self.stopping = asyncio.Event()
        self.calls: dict[tuple[str, str], list[Call]] = defaultdict(list)
        self.started: dict[tuple[str, str], int] = defaultdict(int)
        self.uses: dict[tuple[str, str], Use] = {}
        self.outcomes: dict[str, Outcome] = {}
        self.in_flight: dict[str, Started] = {}
        self.on_call: Callable[[Call], None] = lambda _: None
        for entry in writer.log.entries:
            if isinstance(entry, Started):
                self.started[entry.owner, entry.purpose] += 1
            elif isinstance(entry, Call):
                self.calls[entry.owner, entry.purpose].append(entry)
            elif isinstance(entry, Use):
                self.uses[entry.owner, entry.purpose] = entry
            elif isinstance(entry, Answered | Failed):
                self.outcomes[entry.trial] = entry
        self.purse.recall(writer.log.entries)

    async def ask(self, errand: Errand) -> Call:
        """The finished receipt of a call: from the journal where it holds one, else paid for now.

        Raises:
            AskError: it failed for good. StoppedError: the run is stopping, or its budget is used up.
            TrialError: (bug) the journal holds another request under this purpose.
        """
        past = self._past(errand)
        if past and final(past[-1], len(past), self.specs[errand.model].attempts):
            return answered(past[-1])
        finished = len(past)
        while True:
            call = await self._attempt(errand, finished)
            finished += 1
            if final(call, finished, self.specs[errand.model].attempts):
                return answered(call)
            assert call.fault is not None
            if SYMPTOMS[call.fault.symptom].retry is Retry.fatal:
                raise self.halt(f"{call.model_requested}: {call.fault.message}; the next call would fail alike")
            await self._wait(call, finished)

    def halt(self, why: str) -> StoppedError:
        """Let no further call begin; those under way come to their end. Returns the error to raise."""
        self.stop = self.stop or why
        self.stopping.set()
        return StoppedError(self.stop)

    def _past(self, errand: Errand) -> list[Call]:
        """Finished attempts of this call; one that was cancelled, or that nobody could have answered, is none."""
        key, sha = (errand.owner, errand.purpose), digest(errand.request)
        past = [call for call in self.calls[key] if not unfinished(call)]
        for call in past:
            if call.request_sha256 != sha:
                raise TrialError(
                    Cause.bug,
                    f"{errand.owner} {errand.purpose}: the journal holds another request under this purpose "
                    f"({call.request_sha256[:12]}, now {sha[:12]}): the arm did not repeat itself on resuming",
                )
        return past

    async def _attempt(self, errand: Errand, finished: int) -> Call:
        async with self.slots[errand.model]:
            if self.stop is not None:
                raise StoppedError(self.stop)
            try:
                reserved = self.purse.reserve(errand.model, errand.request)
            except StoppedError as error:
                raise self.halt(str(error)) from None
            started = self._start(errand, finished)
            clock = time.monotonic()
            cancelled: asyncio.CancelledError | None = None
            try:
                raw = await self.models.complete(errand.model, errand.request, errand.context(finished))
            except asyncio.CancelledError as error:
                cancelled, raw = error, _cancelled()
            call = self._receipt(errand, started, raw, time.monotonic() - clock)
            self.purse.settle(reserved, call.tokens_out, call.cost_usd)
            if cancelled is not None:
                raise cancelled
            return call

    def _start(self, errand: Errand, finished: int) -> Started:
        key = (errand.owner, errand.purpose)
        attempt = self.started[key] + 1
        started = Started(
            id=f"{errand.owner}#{errand.purpose}#{attempt}",
            owner=errand.owner,
            purpose=errand.purpose,
            attempt=attempt,
            request_sha256=digest(errand.request),
            max_tokens=errand.request.max_tokens,
            # A call that is asked again because its process was killed is no retry: nothing of it had failed.
            bucket="retry" if finished and errand.bucket == "deliberation" else errand.bucket,
            model=errand.model,
            at=journal.now(),
        )
        self.writer.append(started)
        self.started[key] = attempt
        self.in_flight[started.id] = started
        return started

    def _receipt(self, errand: Errand, started: Started, raw: RawReply, seconds: float) -> Call:
        request = errand.request
        call = Call(
            id=started.id,
            owner=errand.owner,
            purpose=errand.purpose,
            attempt=started.attempt,
            request_sha256=started.request_sha256,
            bucket=started.bucket,
            role=errand.role,
            model=errand.model,
            model_requested=self.specs[errand.model].name,
            model_served=raw.model_served,
            params=_params(request),
            messages=request.messages,
            template=errand.template if errand.template != request.messages else None,
            json_schema=request.json_schema,
            tools=request.tools,
            reply=raw.text,
            tool_calls=raw.tool_calls,
            logprobs=raw.logprobs,
            reasoning_text=raw.reasoning_text,
            finish=raw.finish,
            tokens_in=raw.tokens_in,
            tokens_out=raw.tokens_out,
            tokens_cached=raw.tokens_cached,
            tokens_reasoning=raw.tokens_reasoning,
            usage_complete=raw.usage_complete,
            cost_usd=cost(self.frozen.prices.get(errand.model), raw),
            seconds=round(seconds, 3),
            started_at=started.at,
            saw=errand.saw,
            fault=raw.fault,
        )
        self.writer.append(call)
        self.calls[errand.owner, errand.purpose].append(call)
        self.in_flight.pop(started.id, None)
        self.on_call(call)
        return call

    async def _wait(self, call: Call, finished: int) -> None:
        """Back off before the next attempt: what the server asked for, else exponentially, with seeded jitter."""
        assert call.fault is not None
        jitter = random.Random(seed_of(call.owner, call.purpose, finished)).random()
        seconds = min(BACKOFF_CEILING_SECONDS, BACKOFF_SECONDS * 2 ** (finished - 1)) * (0.5 + jitter)
        if call.fault.retry_after is not None:
            seconds = call.fault.retry_after + jitter * 0.1
        if kind_of(call.model_requested) == "scripted" and call.fault.retry_after is None:
            return  # nobody is spared by waiting for a script
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stopping.wait(), seconds)

    def note(self, about: str, text: str, subject: str | None = None) -> None:
        """Write a note into the journal."""
        self.writer.append(Note(about=about, text=text, subject=subject, at=journal.now()))


def unfinished(call: Call) -> bool:
    """An attempt that says nothing of the request: cancelled, or refused for a reason that stopped the run."""
    return call.fault is not None and (
        call.fault.symptom is Symptom.cancelled or SYMPTOMS[call.fault.symptom].retry is Retry.fatal
    )


def final(call: Call, finished: int, attempts: int) -> bool:
    """Is this the last word: an answer, a failure not to be retried, or the last attempt?"""
    if call.fault is None:
        return True
    retry = SYMPTOMS[call.fault.symptom].retry
    return retry is Retry.never or (retry is not Retry.fatal and finished >= attempts)


def answered(call: Call) -> Call:
    """A final receipt that holds a reply.

    Raises:
        AskError: it holds a failure.
    """
    if call.fault is not None:
        raise AskError(call.fault.symptom, f"{call.purpose}: {call.fault.message}")
    return call


def _params(request: Request) -> dict[str, JsonValue]:
    fields = plain(request)
    assert isinstance(fields, dict)
    return {
        key: fields[key]
        for key in ("temperature", "top_p", "max_tokens", "seed", "logprobs")
        if fields[key] is not None
    }


def _cancelled() -> RawReply:
    return RawReply(fault=Fault(symptom=Symptom.cancelled, message="cancelled by the operator; possibly billed"))


def reply_of(call: Call) -> Reply:
    """What an arm may see of a receipt."""
    data: JsonValue = None
    if call.json_schema is not None and call.reply:
        try:
            data = json.loads(call.reply)
        except (ValueError, RecursionError):
            data = None
    return Reply(
        text=call.reply or "", finish=call.finish, data=data, tool_calls=call.tool_calls, logprobs=call.logprobs
    )


def request_for(
    spec: ModelSpec,
    messages: tuple[Message, ...],
    seed: int,
    *,
    max_tokens: int | None = None,
    schema: dict[str, JsonValue] | None = None,
    tools: tuple[dict[str, JsonValue], ...] | None = None,
    logprobs: int | None = None,
) -> Request:
    """A request with a model's sampling settings. The seed sent is 31 bits, which every provider takes."""
    return Request(
        messages=messages,
        temperature=spec.temperature,
        top_p=spec.top_p,
        max_tokens=min(max_tokens or spec.max_tokens, spec.max_tokens),
        seed=seed % 2**31,
        json_schema=schema,
        tools=tools,
        logprobs=logprobs,
    )
