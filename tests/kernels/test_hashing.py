"""XXH64 against published digests and the reference implementation."""

from __future__ import annotations

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from foretest.kernels.hashing import chain_floats, chain_integers, hash_integers, hash_strings, xxh64_words


def hash_texts(texts: list[str]) -> list[int]:
    encoded = [text.encode() for text in texts]
    offsets = np.concatenate([[0], np.cumsum([len(data) for data in encoded])]).astype(np.int64)
    return hash_strings(np.frombuffer(b"".join(encoded), np.uint8), offsets).tolist()


@pytest.mark.parametrize(
    ("text", "digest"),
    [
        ("", 0xEF46DB3751D8E999),
        ("a", 0xD24EC4F1A98C6E5B),
        ("abc", 0x44BC2CF5AD770999),
        ("Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_published_digests(text: str, digest: int) -> None:
    assert hash_texts([text]) == [digest]


def test_strings_of_every_length() -> None:
    alphabet = "The quick brown fox jumps over the lazy dog 0123456789 "
    texts = [(alphabet * 3)[:length] for length in range(101)]
    assert hash_texts(texts) == [xxhash.xxh64_intdigest(text.encode()) for text in texts]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=60), max_size=8))
def test_any_unicode_is_hashed_as_utf8(texts: list[str]) -> None:
    assert hash_texts(texts) == [xxhash.xxh64_intdigest(text.encode()) for text in texts]


def test_integers_are_their_eight_little_endian_bytes() -> None:
    values = [0, 1, -1, 7, -12345, 2**32, -(2**32), 2**63 - 1, -(2**63)]
    expected = [xxhash.xxh64_intdigest(value.to_bytes(8, "little", signed=True)) for value in values]
    assert hash_integers(np.array(values, np.int64)).tolist() == expected


def test_words_of_every_count_and_seed() -> None:
    words = np.random.default_rng(0).integers(0, 2**64, 20, dtype=np.uint64)
    for n in range(21):
        for seed in (0, 1, 2**64 - 1):
            expected = xxhash.xxh64_intdigest(words[:n].astype("<u8").tobytes(), seed=seed)
            assert int(xxh64_words(words, n, np.uint64(seed))) == expected, (n, seed)


def chained(hashes: np.ndarray, lists: list[list[float]], kind: str) -> list[int]:
    return [
        xxhash.xxh64_intdigest(h.astype("<u8").tobytes() + np.array(x, kind).tobytes())
        for h, x in zip(hashes, lists, strict=True)
    ]


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64, np.uint16])
def test_integers_are_chained_as_int64(kind: type) -> None:
    hashes = np.array([5, 2**64 - 1, 0], np.uint64)
    values = np.array([9, 100, 1], kind)
    if kind is not np.uint16:
        values[1] = -7
    got = hashes.copy()
    chain_integers(got, values, np.array([1, 0, 0]), np.array([2, 0, 3]))
    assert got.tolist() == chained(hashes, [values[1:].tolist(), [], values.tolist()], "<i8")


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_floats_are_chained_as_float64_and_minus_zero_as_zero(kind: type) -> None:
    hashes = np.array([5, 2**64 - 1, 0], np.uint64)
    values = np.array([-0.0, 1.5, -2.25, 1e30], kind)
    got = hashes.copy()
    chain_floats(got, values, np.array([0, 1, 2]), np.array([2, 0, 2]))
    assert got.tolist() == chained(hashes, [[0.0, 1.5], [], values[2:].tolist()], "<f8")
