"""Canonical bytes and their hashes; the error tables."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import canonical, errors

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=80, derandomize=True)
@given(JSON)
def test_canonical_bytes_read_back_as_the_same_value(value: object) -> None:
    """Nothing is lost, and the bytes are ASCII without a newline."""
    data = canonical.canonical(value)  # type: ignore[arg-type]
    assert json.loads(data) == value
    assert b"\n" not in data
    data.decode("ascii")


def test_key_order_does_not_matter_and_values_do() -> None:
    """Two dictionaries of the same content have one hash."""
    assert canonical.digest({"a": 1, "b": 2}) == canonical.digest({"b": 2, "a": 1})
    assert canonical.digest({"a": 1}) != canonical.digest({"a": 2})
    assert canonical.digest({"a": 1}) == hashlib.sha256(b'{"a":1}').hexdigest()


def test_not_a_number_is_refused() -> None:
    """NaN and infinities have no canonical form."""
    with pytest.raises(ValueError, match="JSON"):
        canonical.canonical(float("nan"))


def test_a_set_of_hashes_has_one_hash_whatever_its_order() -> None:
    """A pool's hash does not depend on the order of its file."""
    assert canonical.digest_set(["b", "a"]) == canonical.digest_set(["a", "b"])


def test_seeds_come_from_names_and_are_pinned() -> None:
    """A changed rule for seeds would change every plan: the number is held here."""
    expected = int.from_bytes(hashlib.sha256(b"7\x1farm").digest()[:8], "big") >> 1
    assert canonical.seed_of(7, "arm") == expected
    assert canonical.seed_of("a", "b") != canonical.seed_of("ab")


@pytest.mark.parametrize("symptom", list(errors.Symptom))
def test_every_symptom_has_a_meaning(symptom: errors.Symptom) -> None:
    """The table is total: each symptom has a cause, each cause a blame."""
    meaning = errors.SYMPTOMS[symptom]
    assert meaning.cause in errors.BLAME


@pytest.mark.parametrize(
    ("symptom", "cause", "retry"),
    [
        ("rate_limited", "provider", "rate_limited"),
        ("server_error", "provider", "transient"),
        ("timed_out", "timeout", "transient"),
        ("authentication", "provider", "fatal"),
        ("billing", "provider", "fatal"),
        ("bad_request", "provider", "never"),
        ("overflow", "overflow", "never"),
        ("cut", "truncated", "never"),
        ("content_filter", "refused", "never"),
        ("no_content", "unreadable", "never"),
        ("substituted_model", "provider", "never"),
        ("internal", "bug", "never"),
    ],
)
def test_a_symptom_ends_in_its_cause(symptom: str, cause: str, retry: str) -> None:
    """One row a symptom: what it means and whether it is tried again."""
    assert errors.SYMPTOMS[errors.Symptom(symptom)] == (errors.Cause(cause), errors.Retry(retry))


def test_own_doing_and_infrastructure_are_told_apart() -> None:
    """Only what the arm could not help is infrastructure."""
    infrastructure = {cause.value for cause, blame in errors.BLAME.items() if blame is errors.Blame.infrastructure}
    assert infrastructure == {"provider", "timeout", "budget", "bug"}


def test_a_misspelt_word_gets_the_nearest_right_one() -> None:
    """The hint names the closest known word, or all of them."""
    assert errors.nearest("dialectik", ["dialectic", "chain"]) == "did you mean 'dialectic'?"
    assert errors.nearest("zzz", ["dialectic", "chain"]) == "known: chain, dialectic"
