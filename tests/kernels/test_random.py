"""SplitMix64 in counter mode: the published sequence, purity, and the moments of uniforms."""

from __future__ import annotations

import numpy as np
import pytest

from foretest.kernels.random import bits_at, derive, draw_state, mix64, state_of, uniform_at, uniforms

PUBLISHED = [
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
    4593380528125082431,
    16408922859458223821,
]


def test_the_published_sequence_of_seed_1234567() -> None:
    assert [int(bits_at(np.uint64(1234567), counter)) for counter in range(5)] == PUBLISHED


def test_a_counter_may_be_asked_for_in_any_order() -> None:
    assert [int(bits_at(np.uint64(1234567), counter)) for counter in (4, 0, 2)] == [PUBLISHED[i] for i in (4, 0, 2)]


def test_the_finaliser_is_a_bijection_on_a_sample() -> None:
    # z ^ z>>31 and the multiplications can be undone, so distinct inputs never meet
    inverse = pow(0x94D049BB133111EB, -1, 2**64), pow(0xBF58476D1CE4E5B9, -1, 2**64)

    def undo(z: int, shift: int) -> int:
        out = z
        for _ in range(3):
            out = z ^ (out >> shift)
        return out

    for z in [0, 1, 2**63, 2**64 - 1, 123456789]:
        mixed = int(mix64(np.uint64(z)))
        back = undo(undo(undo(mixed, 31) * inverse[0] % 2**64, 27) * inverse[1] % 2**64, 30)
        assert back == z


def test_uniforms_are_the_top_bits_in_the_open_interval() -> None:
    state = np.uint64(1234567)
    for counter, bits in enumerate(PUBLISHED):
        u = uniform_at(state, counter)
        assert 0.0 < u < 1.0
        assert u == pytest.approx(bits / 2**64, abs=2**-51)


def test_the_smallest_bits_give_a_uniform_above_zero() -> None:
    # mix64(0) = 0: the state before the first counter that yields no bits at all
    state = np.uint64((-0x9E3779B97F4A7C15) % 2**64)
    assert int(bits_at(state, 0)) == 0
    assert 0.0 < uniform_at(state, 0) < 1e-15


def test_a_number_is_a_function_of_seed_stream_key_draw_and_place_alone() -> None:
    keys = np.array([3, 2**64 - 1, 77], np.uint64)
    whole = uniforms(5, 2, keys, 0, 6, 4)
    for i, key in enumerate(keys):
        for d in range(6):
            for j in range(4):
                state = np.uint64(draw_state(np.uint64(state_of(5, 2, key)), d))
                expected = uniform_at(state, j)
                assert whole[i, d, j] == expected
    assert np.array_equal(uniforms(5, 2, keys[::-1].copy(), 2, 3, 2), whole[::-1, 2:5, :2])
    for other in (uniforms(6, 2, keys, 0, 6, 4), uniforms(5, 3, keys, 0, 6, 4)):
        assert not (other == whole).any()


def within_4_se(sample: np.ndarray, mean: float, sd: float) -> bool:
    return bool(abs(sample.mean() - mean) <= 4 * sd / np.sqrt(sample.size))


def test_moments_and_correlations() -> None:
    keys = np.arange(300, dtype=np.uint64)  # consecutive keys are the hard case
    u = uniforms(0, 1, keys, 0, 40, 8)
    assert u.min() > 0.0
    assert u.max() < 1.0
    assert within_4_se(u, 0.5, np.sqrt(1 / 12))
    assert within_4_se(u**2, 1 / 3, np.sqrt(4 / 45))
    v = (u - 0.5) * np.sqrt(12)
    # the product of two independent standardised numbers has mean 0 and variance 1
    for product in (v[:, :, 1:] * v[:, :, :-1], v[:, 1:] * v[:, :-1], v[1:] * v[:-1]):
        assert within_4_se(product, 0.0, 1.0)
    for other in (uniforms(1, 1, keys, 0, 40, 8), uniforms(0, 2, keys, 0, 40, 8)):
        assert within_4_se(v * (other - 0.5) * np.sqrt(12), 0.0, 1.0)


def test_derived_hashes_share_no_bits() -> None:
    hashes = np.arange(40_000, dtype=np.uint64)
    one, two = derive(hashes, 1), derive(hashes, 2)
    assert np.array_equal(one, [mix64(h + np.uint64(0x9E3779B97F4A7C15)) for h in hashes])
    cells = np.bincount((one % np.uint64(10)).astype(int) * 10 + (two % np.uint64(10)).astype(int), minlength=100)
    # χ² of 100 cells of 400 each: mean 99, standard deviation √198
    assert abs(((cells - 400.0) ** 2 / 400.0).sum() - 99) <= 4 * np.sqrt(198)


def test_a_uniform_is_below_1_for_every_state() -> None:
    """The state whose first output is 2^64 − 1, found by undoing the mix."""
    mask = (1 << 64) - 1

    def undo_shift(z: int, s: int) -> int:
        x = z
        for _ in range(64 // s + 1):
            x = z ^ (x >> s)
        return x

    z = undo_shift(mask, 31) * pow(0x94D049BB133111EB, -1, 1 << 64) & mask
    z = undo_shift(z, 27) * pow(0xBF58476D1CE4E5B9, -1, 1 << 64) & mask
    state = (undo_shift(z, 30) - 0x9E3779B97F4A7C15) & mask
    assert int(bits_at(np.uint64(state), 0)) == mask
    assert uniform_at(np.uint64(state), 0) < 1.0
