"""The seam to providers: the only file that imports litellm, and only inside its functions.

One request a call: litellm's own retries are off, ours leave receipts. litellm turns a missing usage into zeros, so the raw
body of the answer is kept beside its object where the provider speaks OpenAI's protocol; elsewhere zeros are read as unknown.
"""

from __future__ import annotations

import json
import os
from contextvars import ContextVar
from functools import cache
from typing import Any

from harness.errors import Symptom
from harness.records import Fault, ModelSpec, Price, RawReply, Request, TokenLogprobs, ToolCall

_BODY: ContextVar[dict[str, Any] | None] = ContextVar("body", default=None)
_DUMMY_KEY = "not-needed"
LOOPBACK = ("http://127.0.0.1", "http://localhost", "http://[::1]")


@cache
def _litellm() -> Any:
    """litellm, imported once and quieted: no network for price maps, no telemetry, no debug text."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import logging
    import warnings

    # Its typed dictionaries make pydantic warn, also later when a provider's module is first loaded.
    warnings.filterwarnings("ignore", message=".*`ReadOnly` qualifier", category=UserWarning)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import litellm

    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.drop_params = False
    return litellm


@cache
def warm() -> None:
    """Import all that a first call would, so that no deadline pays for it. Sends nothing."""
    _litellm().completion(
        model="openai/warm", messages=[{"role": "user", "content": "x"}], mock_response="x", api_key=_DUMMY_KEY
    )


def version() -> str:
    """The installed version, without importing it."""
    from importlib import metadata

    return metadata.version("litellm")


class Client:
    """The HTTP session of one run, with a hook that keeps the raw body of each answer for the task that asked."""

    def __init__(self) -> None:
        import httpx

        async def keep(response: httpx.Response) -> None:
            holder = _BODY.get()
            if holder is not None:
                await response.aread()
                holder["status"], holder["text"] = response.status_code, response.text

        self.http = httpx.AsyncClient(event_hooks={"response": [keep]}, timeout=None, follow_redirects=True)

    async def close(self) -> None:
        """Close the session."""
        await self.http.aclose()


async def complete(
    spec: ModelSpec, request: Request, client: Client, *, name: str | None = None, api_base: str | None = None
) -> RawReply:
    """One attempt. `name` and `api_base` replace the spec's, for a server that we run ourselves."""
    litellm = _litellm()
    litellm.aclient_session = client.http
    holder: dict[str, Any] = {}
    token = _BODY.set(holder)
    try:
        response = await litellm.acompletion(**_arguments(spec, request, name, api_base))
        return reply_of(response, _raw(holder))
    except Exception as error:  # every failure of a provider is data; a cancellation is no Exception and passes
        return RawReply(fault=fault_of(error, holder))
    finally:
        _BODY.reset(token)


def _arguments(spec: ModelSpec, request: Request, name: str | None, api_base: str | None) -> dict[str, Any]:
    base = api_base or spec.api_base
    arguments: dict[str, Any] = {
        "model": name or spec.name,
        "messages": [_message(message) for message in request.messages],
        "max_tokens": request.max_tokens,
        "timeout": spec.timeout_seconds,
        "num_retries": 0,
        "max_retries": 0,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "seed": request.seed,
        "api_base": base,
        "reasoning_effort": spec.effort,
        "tools": list(request.tools) if request.tools else None,
        **spec.extra,
    }
    if request.json_schema is not None:
        schema = {"name": "reply", "schema": request.json_schema}
        arguments["response_format"] = {"type": "json_schema", "json_schema": schema}
    if request.logprobs:
        arguments |= {"logprobs": True, "top_logprobs": request.logprobs}
    if base and base.startswith(LOOPBACK) and not os.environ.get("OPENAI_API_KEY"):
        arguments["api_key"] = _DUMMY_KEY
    return {key: value for key, value in arguments.items() if value is not None}


def _message(message: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"role": message.role, "content": message.text.encode("utf-8", "replace").decode("utf-8")}
    if message.tool_calls:
        made["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in message.tool_calls
        ]
    if message.tool_call_id is not None:
        made["tool_call_id"] = message.tool_call_id
    return made


def _raw(holder: dict[str, Any]) -> dict[str, Any] | None:
    """The body as an object; None: not kept, or not one."""
    try:
        body = json.loads(holder.get("text") or "")
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


# --- what came back --------------------------------------------------------------------------------------------------


def reply_of(response: Any, raw: dict[str, Any] | None) -> RawReply:
    """A provider's object as plain data. `raw` is the body that it was made from, where it is known."""
    usage = usage_of(response, raw)
    served = (raw or {}).get("model") or getattr(response, "model", None)
    if not response.choices or (raw is not None and raw.get("choices") == []):
        return RawReply(
            model_served=served, **usage, fault=Fault(symptom=Symptom.no_choices, message="an empty list of choices")
        )
    choice = response.choices[0]
    message = choice.message
    text = message.content if isinstance(message.content, str) else None
    tool_calls = tuple(
        ToolCall(id=call.id or "", name=call.function.name or "", arguments=call.function.arguments or "")
        for call in getattr(message, "tool_calls", None) or ()
    )
    finish = _finish(choice, raw)
    reasoning = getattr(message, "reasoning_content", None)
    return RawReply(
        text=text,
        finish=finish,
        model_served=served,
        reasoning_text=reasoning if isinstance(reasoning, str) else None,
        tool_calls=tool_calls,
        logprobs=_logprobs(choice),
        fault=_empty(text, finish, tool_calls, raw),
        **usage,
    )


def _finish(choice: Any, raw: dict[str, Any] | None) -> str | None:
    """The finish as the provider said it: litellm puts "stop" where nothing was said."""
    if raw is not None:
        try:
            said = raw["choices"][0].get("finish_reason")
            return str(said) if said is not None else None
        except (LookupError, TypeError, AttributeError):
            pass  # not OpenAI's shape: take litellm's word
    return str(choice.finish_reason) if choice.finish_reason else None


def _empty(
    text: str | None, finish: str | None, tool_calls: tuple[ToolCall, ...], raw: dict[str, Any] | None
) -> Fault | None:
    """No content, an empty text, a refusal and a filter's end are different things; none is an answer."""
    refusal = None
    if raw is not None:
        try:
            refusal = raw["choices"][0]["message"].get("refusal")
        except (LookupError, TypeError, AttributeError):
            refusal = None
    if finish == "content_filter":
        return Fault(symptom=Symptom.content_filter, message="ended by the content filter")
    if refusal:
        return Fault(symptom=Symptom.refusal, message="the model refused")
    if text or tool_calls:
        return None
    if finish == "length":
        return Fault(symptom=Symptom.cut, message="all tokens were spent before any content")
    return Fault(symptom=Symptom.no_content, message="content is null" if text is None else "content is empty")


def usage_of(response: Any, raw: dict[str, Any] | None) -> dict[str, Any]:
    """Token counts; None where the provider did not say, or said what cannot be."""
    unknown = {"tokens_in": None, "tokens_out": None, "usage_complete": False}
    usage = getattr(response, "usage", None)
    if usage is None or (raw is not None and not raw.get("usage")):
        return unknown
    plain = raw["usage"] if raw is not None and isinstance(raw.get("usage"), dict) else usage.model_dump()
    into, out = (
        _count(plain.get("prompt_tokens", usage.prompt_tokens)),
        _count(plain.get("completion_tokens", usage.completion_tokens)),
    )
    if into is None or out is None or (into == 0 and out == 0):
        return unknown
    cached = _count((plain.get("prompt_tokens_details") or {}).get("cached_tokens"))
    thought = _count((plain.get("completion_tokens_details") or {}).get("reasoning_tokens"))
    if (cached or 0) > into or (thought or 0) > out:
        return unknown
    return {
        "tokens_in": into,
        "tokens_out": out,
        "tokens_cached": cached,
        "tokens_reasoning": thought,
        "usage_complete": True,
    }


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _logprobs(choice: Any) -> tuple[TokenLogprobs, ...] | None:
    held = getattr(choice, "logprobs", None)
    content = getattr(held, "content", None) or (held.get("content") if isinstance(held, dict) else None)
    if not content:
        return None
    found = []
    for position in content:
        top = position["top_logprobs"] if isinstance(position, dict) else position.top_logprobs
        pairs = [(t["token"], t["logprob"]) if isinstance(t, dict) else (t.token, t.logprob) for t in top]
        found.append(TokenLogprobs(top={token: float(logprob) for token, logprob in pairs if logprob is not None}))
    return tuple(found)


# --- what went wrong -------------------------------------------------------------------------------------------------

_BY_TYPE: dict[str, Symptom] = {
    "AuthenticationError": Symptom.authentication,
    "PermissionDeniedError": Symptom.authentication,
    "CallerCredentialAuthenticationError": Symptom.authentication,
    "PaymentRequiredError": Symptom.billing,
    "RateLimitError": Symptom.rate_limited,
    "CallerCredentialRateLimitError": Symptom.rate_limited,
    "Timeout": Symptom.timed_out,
    "NotFoundError": Symptom.not_found,
    "ContextWindowExceededError": Symptom.overflow,
    "ContentPolicyViolationError": Symptom.content_filter,
    "InternalServerError": Symptom.server_error,
    "BadGatewayError": Symptom.server_error,
    "ServiceUnavailableError": Symptom.server_error,
    "APIConnectionError": Symptom.connection,
    "APIResponseValidationError": Symptom.malformed_body,
    "JSONSchemaValidationError": Symptom.malformed_body,
    "UnsupportedParamsError": Symptom.bad_request,
    "UnprocessableEntityError": Symptom.bad_request,
    "BadRequestError": Symptom.bad_request,
    "InvalidRequestError": Symptom.bad_request,
}
_BILLING = ("insufficient_quota", "insufficient quota", "credit balance", "exceeded your current quota", "billing")
_OVERFLOW = (
    "context length",
    "context window",
    "exceed_context_size",
    "exceeds the available context",
    "maximum context",
)


def fault_of(error: Exception, holder: dict[str, Any]) -> Fault:
    """An exception of litellm as a fault with its symptom, its wait, and a text without keys."""
    text = str(getattr(error, "message", None) or error)
    symptom = _symptom(error, text.lower(), holder)
    return Fault(
        symptom=symptom, message=scrub(f"{type(error).__name__}: {text}")[:400], retry_after=_retry_after(error)
    )


def _symptom(error: Exception, text: str, holder: dict[str, Any]) -> Symptom:
    if holder.get("status") == 200:
        body = _raw(holder)
        if body is None:
            return Symptom.malformed_body
        return Symptom.no_choices if body.get("choices") in ([], None) else Symptom.malformed_body
    for kind in type(error).__mro__:
        symptom = _BY_TYPE.get(kind.__name__)
        if symptom is not None:
            break
    else:
        status = getattr(error, "status_code", None)
        return Symptom.server_error if isinstance(status, int) and status >= 500 else Symptom.internal
    if symptom is Symptom.rate_limited and any(word in text for word in _BILLING):
        return Symptom.billing
    if symptom is Symptom.bad_request and any(word in text for word in _OVERFLOW):
        return Symptom.overflow
    # A refused connection reaches us as an "internal server error" without any answer of a server.
    return (
        Symptom.connection if symptom is Symptom.server_error and "connection error" in text and not holder else symptom
    )


def _retry_after(error: Exception) -> float | None:
    for source in (getattr(error, "response", None), error):
        headers = getattr(source, "headers", None) or getattr(source, "litellm_response_headers", None) or {}
        try:
            return max(0.0, float(headers["retry-after"]))
        except (LookupError, TypeError, ValueError):
            continue
    return None


def scrub(text: str) -> str:
    """A text without any secret of the environment."""
    for name, value in os.environ.items():
        if len(value) >= 8 and name.upper().endswith(("KEY", "TOKEN", "SECRET", "PASSWORD")):
            text = text.replace(value, f"<{name}>")
    return text


# --- what is known beforehand ----------------------------------------------------------------------------------------


def problem(spec: ModelSpec) -> str | None:
    """Why a provider's model cannot be called from here, in words; None: nothing is known to be wrong."""
    litellm = _litellm()
    try:
        litellm.get_llm_provider(spec.name, api_base=spec.api_base)
    except Exception:  # litellm raises several kinds for a name that it cannot place
        return f"{spec.name}: litellm knows no provider for this name; write provider/model, such as openai/{spec.name}"
    if spec.api_base and spec.api_base.startswith(LOOPBACK):
        return None
    found = litellm.validate_environment(spec.name)
    missing = [str(key) for key in found.get("missing_keys") or ()]
    if missing and not found.get("keys_in_environment"):
        return f"{spec.name}: set {' and '.join(missing)} in the environment"
    return None


def price(spec: ModelSpec) -> Price | None:
    """The row of the price map that ships with litellm; None: it has none."""
    litellm = _litellm()
    for name in (spec.name, spec.name.partition("/")[2]):
        row: dict[str, Any] | None = litellm.model_cost.get(name)
        if row is not None:
            return Price(
                tokens_in=_dollars(row.get("input_cost_per_token")),
                tokens_out=_dollars(row.get("output_cost_per_token")),
                tokens_cached=_dollars(row.get("cache_read_input_token_cost")),
                source=f"litellm {version()}: {name}",
            )
    return None


def _dollars(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)
