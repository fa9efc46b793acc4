"""Uniform numbers as a pure function of (seed, key, counter), the same on every machine and in every version.

The key of a display is hashed by XXH64 (seed 0): an integer as the 8 little-endian bytes of its int64, text as UTF-8.
SplitMix64 in counter mode makes numbers of it. With mix64 its finaliser, γ = 0x9E3779B97F4A7C15, all modulo 2^64:

    state = mix64(mix64(hash ^ mix64(seed·γ + STREAM + 1)) + γ)
    u_j   = (floor(mix64(state + (j + 1)·γ) / 2^12) + 1/2) / 2^52,   j = 0, 1, 2, …

so every u_j is a double strictly between 0 and 1, and any of them can be had without the others.
"""

from __future__ import annotations

import operator
import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from foretest.errors import BadInput

Floats = npt.NDArray[np.float64]

#: what sets a service's draws apart from those that Foretest makes in its analyses with the same seed and key
STREAM = 200
GAMMA = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1
_FIRST_MIX, _SECOND_MIX = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB

# of XXH64 (Collet, xxHash specification 0.1.1)
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def mix64(z: int) -> int:
    """SplitMix64's finaliser of a number below 2^64."""
    z = ((z ^ (z >> 30)) * _FIRST_MIX) & _MASK
    z = ((z ^ (z >> 27)) * _SECOND_MIX) & _MASK
    return z ^ (z >> 31)


def seed_state(seed: int) -> int:
    """What a seed becomes before a key is mixed in."""
    return mix64((seed * GAMMA + STREAM + 1) & _MASK)


def display_state(of_seed: int, key: Any) -> int:
    """The generator's state for one display, `of_seed` being the `seed_state`."""
    return mix64((mix64(key_hash(key) ^ of_seed) + GAMMA) & _MASK)


def key_hash(key: Any) -> int:
    """XXH64 of a display's key, an integer or text.

    >>> hex(key_hash("abc")), hex(key_hash(7)) == hex(key_hash(np.int64(7)))
    ('0x44bc2cf5ad770999', True)
    """
    if isinstance(key, str):
        try:
            return xxh64(key.encode())
        except UnicodeEncodeError:
            raise BadInput(
                f"key = {key!r} has a lone surrogate, which no file can hold: expected other text."
            ) from None
    if isinstance(key, bool | np.bool_) or not hasattr(key, "__index__"):
        raise BadInput(f"key = {key!r}: expected the display's id, an integer or text.")
    number = operator.index(key)
    if not -(1 << 63) <= number < 1 << 64:
        raise BadInput(f"key = {key!r}: expected an integer of 64 bits, or text.")
    return _avalanche(_with_word((_P5 + 8) & _MASK, number & _MASK))


def xxh64(data: bytes) -> int:
    """XXH64 of some bytes, with the hash's own seed 0."""
    length = len(data)
    stripes = length // 32 * 32
    h = _of_stripes(data, stripes) if stripes else _P5
    h = (h + length) & _MASK
    words = (length - stripes) // 8
    for word in struct.unpack_from(f"<{words}Q", data, stripes):
        h = _with_word(h, word)
    at = stripes + 8 * words
    if length - at >= 4:
        [half] = struct.unpack_from("<I", data, at)
        h = (_rotated(h ^ (half * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        h = _rotated(h ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    return _avalanche(h)


def _of_stripes(data: bytes, stripes: int) -> int:
    """The hash of the first bytes, 32 at a time: four sums side by side, then joined."""
    sums = [(_P1 + _P2) & _MASK, _P2, 0, -_P1 & _MASK]
    for words in struct.iter_unpack("<4Q", data[:stripes]):
        sums = [_round(total, word) for total, word in zip(sums, words, strict=True)]
    h = sum(_rotated(total, by) for total, by in zip(sums, (1, 7, 12, 18), strict=True)) & _MASK
    for total in sums:
        h = ((h ^ _round(0, total)) * _P1 + _P4) & _MASK
    return h


def _rotated(x: int, by: int) -> int:
    return ((x << by) | (x >> (64 - by))) & _MASK


def _round(total: int, word: int) -> int:
    return _rotated((total + word * _P2) & _MASK, 31) * _P1 & _MASK


def _with_word(h: int, word: int) -> int:
    return (_rotated(h ^ _round(0, word), 27) * _P1 + _P4) & _MASK


def _avalanche(h: int) -> int:
    h = ((h ^ (h >> 33)) * _P2) & _MASK
    h = ((h ^ (h >> 29)) * _P3) & _MASK
    return h ^ (h >> 32)


_SHIFTS = tuple(np.uint64(by) for by in (30, 27, 31, 12))
_MIXES = np.uint64(_FIRST_MIX), np.uint64(_SECOND_MIX)
_TO_UNIT = 2.0**-52
_FEW = 4  # so many are made in less time one by one than as an array
_steps = np.arange(1, 1025, dtype=np.uint64) * np.uint64(GAMMA)  # (j + 1)·γ, as many as were ever asked for


def uniforms(state: int, count: int) -> Floats:
    """u_0, …, u_{count − 1} of a display's state."""
    global _steps
    if count <= _FEW:
        bits = (mix64((state + (j + 1) * GAMMA) & _MASK) >> 12 for j in range(count))
        return np.array([(b + 0.5) * _TO_UNIT for b in bits])
    steps = _steps
    if len(steps) < count:  # two threads may both do it: they assign the same numbers
        _steps = steps = np.arange(1, 2 * count + 1, dtype=np.uint64) * np.uint64(GAMMA)
    z = steps[:count] + np.uint64(state)
    shifted = z >> _SHIFTS[0]
    z ^= shifted
    z *= _MIXES[0]
    np.right_shift(z, _SHIFTS[1], out=shifted)
    z ^= shifted
    z *= _MIXES[1]
    np.right_shift(z, _SHIFTS[2], out=shifted)
    z ^= shifted
    z >>= _SHIFTS[3]
    u = z.view(np.int64).astype(np.float64)
    u += 0.5
    u *= _TO_UNIT
    return u
