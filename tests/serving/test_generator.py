"""Numbers of a display: the reference hash, the published generator, and the same numbers as in an analysis."""

from __future__ import annotations

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from foretest.errors import BadInput
from foretest.kernels.hashing import hash_integers
from foretest.kernels.random import uniforms as in_an_analysis
from foretest.serving.generator import GAMMA, STREAM, display_state, key_hash, mix64, seed_state, uniforms, xxh64


def test_the_published_sequence_of_seed_1234567() -> None:
    bits = [mix64((1234567 + (j + 1) * GAMMA) % 2**64) for j in range(3)]
    assert bits == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=100))
def test_the_hash_is_the_reference_one(data: bytes) -> None:
    assert xxh64(data) == xxhash.xxh64_intdigest(data)


@pytest.mark.parametrize("key", [0, 1, -1, 2**63 - 1, -(2**63), 123456789])
def test_integers_are_hashed_as_a_log_s_ids_are(key: int) -> None:
    assert key_hash(key) == int(hash_integers(np.array([key]))[0])
    assert key_hash(np.int64(key)) == key_hash(key)


def test_integers_beyond_a_signed_one_keep_their_bits() -> None:
    assert key_hash(2**64 - 5) == int(hash_integers(np.array([2**64 - 5], np.uint64))[0])


@pytest.mark.parametrize("key", [None, 1.5, True, np.bool_(True), 2**64, -(2**63) - 1, b"a", (1,)])
def test_what_is_no_key_is_refused(key: object) -> None:
    with pytest.raises(BadInput, match="key = "):
        key_hash(key)


#: (seed, key): the first three numbers, which no version may change
VECTORS = {
    (0, 0): [0.5729331566154038, 0.5964643553931906, 0.8392316958059948],
    (7, 1042): [0.09327514269935377, 0.0631189213325295, 0.05960097485493787],
    (2**63 - 1, "d2b7e0a4-6c1f-4b8e-9f53-0a1c2d3e4f50"): [
        0.11623701263654584,
        0.08091574816453118,
        0.20008883387855858,
    ],
    (7, "Zürich"): [0.6176993097390345, 0.8809277627172386, 0.28566516102140993],
}


@pytest.mark.parametrize(("seed", "key"), VECTORS)
def test_the_numbers_never_change(seed: int, key: int | str) -> None:
    state = display_state(seed_state(seed), key)
    assert uniforms(state, 3).tolist() == VECTORS[seed, key]
    assert uniforms(state, 5)[:3].tolist() == VECTORS[seed, key]  # as an array of many, not one by one


@pytest.mark.parametrize("count", [1, 4, 5, 100, 3000])
def test_an_analysis_has_the_same_numbers(count: int) -> None:
    keys = hash_integers(np.arange(20))
    wanted = in_an_analysis(np.uint64(11), np.uint64(STREAM), keys, 0, 1, count)[:, 0]
    for key in range(20):
        assert uniforms(display_state(seed_state(11), key), count).tolist() == wanted[key].tolist()


def test_numbers_are_uniform_and_do_not_depend_on_one_another() -> None:
    u = np.array([uniforms(display_state(seed_state(3), key), 5) for key in range(20_000)])
    assert ((u > 0.0) & (u < 1.0)).all()
    # the mean of n uniforms has the error 1/√(12 n), their correlation 1/√n
    assert np.abs(u.mean(axis=0) - 0.5).max() < 4.0 / np.sqrt(12 * len(u))
    assert np.abs(np.corrcoef(u.T) - np.eye(5)).max() < 4.5 / np.sqrt(len(u))
    assert abs(np.corrcoef(u[:-1, 0], u[1:, 0])[0, 1]) < 4.0 / np.sqrt(len(u))
