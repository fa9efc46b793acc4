"""Random numbers as a pure function of (seed, stream, display key, counter).

SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) in counter mode: the n-th output of a state is mix(state + n·γ),
so no batch, thread, partition or engine changes a draw.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foretest.kernels.jit import jit, step

GAMMA = np.uint64(0x9E3779B97F4A7C15)
_TO_UNIT = 2.0**-52


@jit
def mix64(z):
    """SplitMix64's finaliser."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@jit
def state_of(seed, stream, key):
    """The generator's state for one display and one purpose (`stream`)."""
    return mix64(key ^ mix64(np.uint64(seed) * GAMMA + np.uint64(stream) + np.uint64(1)))


@jit
def bits_at(state, counter):
    """Output number `counter` (from 0) of the state; kernels pass it as uint64, so that one type is compiled."""
    return mix64(state + (np.uint64(counter) + np.uint64(1)) * GAMMA)


@step
def unit_of(bits):
    """64 bits as a double in the open interval (0, 1)."""
    # 52 bits and a half: with 53, the largest would round to 1; via int64, whose conversion is one instruction
    return (np.float64(np.int64(bits >> np.uint64(12))) + 0.5) * _TO_UNIT


@jit
def uniform_at(state, counter):
    """Number `counter` of the state, in (0, 1)."""
    return unit_of(bits_at(state, counter))


#: (state, number of the draw): the state of that draw's generator, which gives as many numbers as the draw needs
draw_state = bits_at


@jit
def uniforms(seed, stream, keys, first, count, width):
    """out[i, d, j] is number j of draw first+d of keys[i]'s generator."""
    out = np.empty((len(keys), count, width))
    for i in range(len(keys)):
        state = state_of(seed, stream, keys[i])
        for d in range(count):
            generator = draw_state(state, np.uint64(first + d))
            for j in range(width):
                out[i, d, j] = uniform_at(generator, np.uint64(j))
    return out


def derive(hashes: npt.NDArray[np.uint64], salt: int) -> npt.NDArray[np.uint64]:
    """A second hash of each hash, independent of it: buckets, folds and samples must not share bits.

    SplitMix64's finaliser of hash + salt·γ, in NumPy: a few passes over a batch take less time than a compilation.
    """
    z = hashes + np.uint64(salt * int(GAMMA) % (1 << 64))
    shifted = z >> np.uint64(30)
    z ^= shifted
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= np.right_shift(z, np.uint64(27), out=shifted)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= np.right_shift(z, np.uint64(31), out=shifted)
    return z


def derived_bucket(hashes: npt.NDArray[np.uint64], salt: int, buckets: int) -> npt.NDArray[np.int64]:
    """A bucket for each hash, from the hash derived with the salt."""
    z = derive(hashes, salt)
    z %= np.uint64(buckets)
    return z.view(np.int64)
