"""XXH64, the only hash of Foretest: for units, display keys, buckets and folds.

Integers are hashed as 8 little-endian bytes of their int64, strings as UTF-8 (Collet, xxHash specification 0.1.1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from foretest.kernels.jit import jit, step
from foretest.kernels.lists import longest

NAME = "xxh64/1"

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)


@step
def _rotate(x, r):
    return (x << np.uint64(r)) | (x >> np.uint64(64 - r))


@step
def _round(accumulator, word):
    return _rotate(accumulator + word * _P2, 31) * _P1


@step
def _merge(h, accumulator):
    return (h ^ _round(np.uint64(0), accumulator)) * _P1 + _P4


@step
def _avalanche(h):
    h = (h ^ (h >> np.uint64(33))) * _P2
    h = (h ^ (h >> np.uint64(29))) * _P3
    return h ^ (h >> np.uint64(32))


@step
def _tail_word(h, word):
    return _rotate(h ^ _round(np.uint64(0), word), 27) * _P1 + _P4


@jit
def xxh64_words(words, n, seed):
    """XXH64 of the 8·n bytes of words[:n], uint64, little-endian."""
    i = 0
    if n >= 4:
        v1 = seed + _P1 + _P2
        v2 = seed + _P2
        v3 = seed
        v4 = seed - _P1
        while i + 4 <= n:
            v1 = _round(v1, words[i])
            v2 = _round(v2, words[i + 1])
            v3 = _round(v3, words[i + 2])
            v4 = _round(v4, words[i + 3])
            i += 4
        h = _rotate(v1, 1) + _rotate(v2, 7) + _rotate(v3, 12) + _rotate(v4, 18)
        h = _merge(_merge(_merge(_merge(h, v1), v2), v3), v4)
    else:
        h = seed + _P5
    h = h + np.uint64(8 * n)
    while i < n:
        h = _tail_word(h, words[i])
        i += 1
    return _avalanche(h)


@step
def _word(data, at, width):
    word = np.uint64(0)
    for b in range(width):
        word |= np.uint64(data[at + b]) << np.uint64(8 * b)
    return word


@step
def _xxh64_bytes(data, start, length, seed):
    at = start
    end = start + length
    if length >= 32:
        v1 = seed + _P1 + _P2
        v2 = seed + _P2
        v3 = seed
        v4 = seed - _P1
        while at + 32 <= end:
            v1 = _round(v1, _word(data, at, 8))
            v2 = _round(v2, _word(data, at + 8, 8))
            v3 = _round(v3, _word(data, at + 16, 8))
            v4 = _round(v4, _word(data, at + 24, 8))
            at += 32
        h = _rotate(v1, 1) + _rotate(v2, 7) + _rotate(v3, 12) + _rotate(v4, 18)
        h = _merge(_merge(_merge(_merge(h, v1), v2), v3), v4)
    else:
        h = seed + _P5
    h = h + np.uint64(length)
    while at + 8 <= end:
        h = _tail_word(h, _word(data, at, 8))
        at += 8
    if at + 4 <= end:
        h = _rotate(h ^ (_word(data, at, 4) * _P1), 23) * _P2 + _P3
        at += 4
    while at < end:
        h = _rotate(h ^ (np.uint64(data[at]) * _P5), 11) * _P1
        at += 1
    return _avalanche(h)


@jit
def _hash_words(words):
    """words[i] <- XXH64 (seed 0) of its 8 bytes."""
    for i in range(len(words)):
        words[i] = _avalanche(_tail_word(_P5 + np.uint64(8), words[i]))


def hash_integers(values: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.uint64]:
    """XXH64 (seed 0) of each integer as int64; a uint64 beyond that keeps its bits, so that no two are the same.

    Parameters
    ----------
    values: integers, one per row.

    Returns
    -------
    An array of unsigned 64-bit hashes.

    >>> import foretest as ft
    >>> import numpy as np
    >>> int(ft.hash_integers(np.array([42], np.int64))[0] % 1024)
    851
    """
    words = values.astype(np.int64).view(np.uint64)  # a copy, which becomes the answer
    _hash_words(words)
    return words


@jit
def hash_strings(data, offsets):
    """XXH64 (seed 0) of each UTF-8 string data[offsets[i]:offsets[i+1]]."""
    n = len(offsets) - 1
    out = np.empty(n, np.uint64)
    for i in range(n):
        out[i] = _xxh64_bytes(data, offsets[i], offsets[i + 1] - offsets[i], np.uint64(0))
    return out


@jit
def chain_floats(hashes, values, starts, lengths):
    """hashes[i] <- XXH64 of (hashes[i], the numbers of list i as float64); −0 counts as 0."""
    buffer = np.empty(longest(lengths) + 1, np.float64)
    words = buffer.view(np.uint64)
    for i in range(len(hashes)):
        words[0] = hashes[i]
        for j in range(lengths[i]):
            buffer[j + 1] = np.float64(values[starts[i] + j]) + 0.0
        hashes[i] = xxh64_words(words, lengths[i] + 1, np.uint64(0))


@jit
def chain_integers(hashes, values, starts, lengths):
    """hashes[i] <- XXH64 of (hashes[i], the numbers of list i as int64)."""
    words = np.empty(longest(lengths) + 1, np.uint64)
    for i in range(len(hashes)):
        words[0] = hashes[i]
        for j in range(lengths[i]):
            words[j + 1] = np.uint64(np.int64(values[starts[i] + j]))
        hashes[i] = xxh64_words(words, lengths[i] + 1, np.uint64(0))
