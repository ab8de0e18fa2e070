"""The one seam to language models: plain records in, plain records out; one attempt a call, and a failure is data.

embedded/NAME   weights in llama.cpp, a child process on loopback
scripted/KIND   deterministic, for trials and tests
replay/PATH     the journal of an earlier run
anything else   litellm: any provider, any OpenAI-compatible server
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Literal

from pydantic import JsonValue

from harness.errors import SetupError, Symptom, nearest
from harness.models import embedded, litellm_seam, replay, scripted, weights
from harness.models.families import family_of
from harness.records import Context, Fault, ModelSpec, Price, RawReply, Request

__all__ = ["Models", "check", "family_of", "identity", "kind_of", "prepare", "price_of"]

Kind = Literal["embedded", "scripted", "replay", "litellm"]
_DATED = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8}|\d{4})$")


def kind_of(name: str) -> Kind:
    """Which kind of model a name means."""
    head = name.partition("/")[0]
    return head if head in ("embedded", "scripted", "replay") else "litellm"  # type: ignore[return-value]


def check(specs: dict[str, ModelSpec], folder: Path) -> None:
    """Look whether every model of a study can be called from here; calls none.

    Raises:
        SetupError: names each that cannot, and what would be right.
    """
    problems = [
        f"models.{name}: {said}" for name, spec in specs.items() if (said := _problem(spec, folder)) is not None
    ]
    if problems:
        raise SetupError("\n".join(problems))


def _problem(spec: ModelSpec, folder: Path) -> str | None:
    kind = kind_of(spec.name)
    try:
        if kind == "embedded":
            weights.known(spec.name.removeprefix("embedded/"))
        elif kind == "replay":
            replay.journal_of(spec, folder)
    except SetupError as error:
        return str(error)
    if kind == "scripted":
        return _scripted_problem(spec, folder)
    return litellm_seam.problem(spec) if kind == "litellm" else None


def _scripted_problem(spec: ModelSpec, folder: Path) -> str | None:
    name = spec.name.removeprefix("scripted/")
    if name not in scripted.KINDS:
        return f"{spec.name}: no such scripted model; {nearest(name, list(scripted.KINDS))}"
    if name == "file" and not (spec.script and spec.script.replies and (folder / spec.script.replies).is_file()):
        return f"{spec.name}: script.replies names no file beside the study"
    return None


def prepare(specs: dict[str, ModelSpec], say: Callable[[str], None]) -> None:
    """Fetch the weights that are missing.

    Raises:
        SetupError: they cannot be had.
    """
    for name in sorted(
        {spec.name.removeprefix("embedded/") for spec in specs.values() if kind_of(spec.name) == "embedded"}
    ):
        weights.fetch(name, say)


def identity(spec: ModelSpec) -> dict[str, JsonValue]:
    """What freezes of a model besides its settings."""
    kind = kind_of(spec.name)
    if kind == "embedded":
        return dict(embedded.identity(spec))
    if kind == "litellm":
        return {"client": f"litellm {litellm_seam.version()}"}
    return {"client": scripted.VERSION if kind == "scripted" else "replay/1"}


def price_of(spec: ModelSpec) -> Price | None:
    """The price row of a model: the study's own, zero for what runs here, else the price map's; None: unknown."""
    if spec.price is not None:
        return spec.price
    if kind_of(spec.name) != "litellm":
        return Price(tokens_in=0.0, tokens_out=0.0, tokens_cached=0.0, source="runs here")
    return litellm_seam.price(spec)


def served_as_asked(spec: ModelSpec, served: str | None) -> bool:
    """Is the served name the one asked for, a dated version of it, or one that the study accepts? Unknown passes as unknown."""
    if served is None or served in spec.serves:
        return True
    wanted, got = spec.name.rpartition("/")[2], served.rpartition("/")[2]
    return got == wanted or _DATED.sub("", got) == wanted


class Models:
    """The models of one run: what they hold open (servers, sessions) is closed with them."""

    def __init__(self, specs: dict[str, ModelSpec], folder: Path) -> None:
        self.specs, self.folder = specs, folder
        self._servers: dict[tuple[str, int], embedded.Server] = {}
        self._client: litellm_seam.Client | None = None

    async def complete(self, model: str, request: Request, context: Context) -> RawReply:
        """One attempt of a model of the study, within its deadline; a substituted model is a fault that keeps its usage."""
        spec = self.specs[model]
        if self._client is None and kind_of(spec.name) in ("litellm", "embedded"):
            await asyncio.to_thread(litellm_seam.warm)
            self._client = self._client or litellm_seam.Client()
        try:
            async with asyncio.timeout(spec.timeout_seconds):
                raw = await self._complete(spec, request, context)
        except TimeoutError:
            return RawReply(
                fault=Fault(symptom=Symptom.timed_out, message=f"no answer within {spec.timeout_seconds:g} s")
            )
        if raw.fault is None and not served_as_asked(spec, raw.model_served):
            message = f"asked for {spec.name}, served by {raw.model_served}"
            return raw.model_copy(update={"fault": Fault(symptom=Symptom.substituted_model, message=message)})
        return raw

    async def _complete(self, spec: ModelSpec, request: Request, context: Context) -> RawReply:
        kind = kind_of(spec.name)
        if kind == "scripted":
            return await scripted.complete(spec, request, context, self.folder)
        if kind == "replay":
            raw = await replay.complete(spec, request, context, self.folder)
            return raw.model_copy(update={"model_served": None}) if raw.fault is None else raw
        assert self._client is not None
        if kind == "litellm":
            return await litellm_seam.complete(spec, request, self._client)
        return await self._embedded(spec, request, self._client)

    async def _embedded(self, spec: ModelSpec, request: Request, client: litellm_seam.Client) -> RawReply:
        name = spec.name.removeprefix("embedded/")
        key = (name, spec.context_tokens or embedded.CONTEXT_TOKENS)
        server = self._servers.setdefault(key, embedded.Server(*key))
        address = await server.address()
        return await litellm_seam.complete(spec, request, client, name=f"openai/{name}", api_base=address)

    async def close(self) -> None:
        """Stop every server and close every session."""
        for server in self._servers.values():
            server.stop()
        if self._client is not None:
            await self._client.close()

    async def __aenter__(self) -> Models:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
