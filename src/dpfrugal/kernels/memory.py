"""Bytes at an address: what Arrow's buffers are read by, without a copy and never past their end.

Each function is written twice, as in ``bits``: in Python, which is what it means and what runs without the compiler,
and in LLVM's terms. Whoever calls them holds the buffers.
"""

import ctypes
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

# The largest prime below 2^61, a Mersenne prime: the field that keys are hashed in.
PRIME: Final = 2**61 - 1

_BYTE, _HALF, _WORD, _DOUBLE = (ir.IntType(bits) for bits in (8, 32, 64, 128))


def byte_at(address: Any) -> Any:
    """The byte at an address, as a word."""
    return np.uint64(ctypes.string_at(int(address), 1)[0])


def half_at(address: Any) -> Any:
    """Four bytes at any address, lowest first, as a word."""
    return np.uint64(int.from_bytes(ctypes.string_at(int(address), 4), "little"))


def word_at(address: Any) -> Any:
    """Eight bytes at any address, lowest first."""
    return np.uint64(int.from_bytes(ctypes.string_at(int(address), 8), "little"))


def fetch(address: Any) -> None:
    """Ask for the cache line at an address, which will be read soon."""


def product(one: Any, other: Any) -> Any:
    """The product of two numbers below ``PRIME``, modulo ``PRIME``."""
    return np.uint64(int(one) * int(other) % PRIME)


def _load(width: Any) -> Any:
    @intrinsic
    def load(_: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            place = builder.inttoptr(arguments[0], width.as_pointer())
            loaded = builder.load(place, align=1)
            return loaded if width is _WORD else builder.zext(loaded, _WORD)

        return types.uint64(types.uint64), generate

    return load


_load_byte, _load_half, _load_word = _load(_BYTE), _load(_HALF), _load(_WORD)


@intrinsic
def _fetch(_: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _BYTE.as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, _HALF, _HALF, _HALF])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
        to_read, keep, data = _HALF(0), _HALF(3), _HALF(1)
        builder.call(function, [builder.inttoptr(arguments[0], pointer), to_read, keep, data])
        return context.get_dummy_value()

    return types.void(types.uint64), generate


@intrinsic
def _product(_: Any, one: Any, other: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        double = builder.mul(*(builder.zext(argument, _DOUBLE) for argument in arguments))
        low = builder.and_(builder.trunc(double, _WORD), _WORD(PRIME))
        high = builder.trunc(builder.lshr(double, _DOUBLE(61)), _WORD)
        total = builder.add(low, high)  # at most 2 * PRIME
        return builder.select(builder.icmp_unsigned(">=", total, _WORD(PRIME)), builder.sub(total, _WORD(PRIME)), total)

    return types.uint64(types.uint64, types.uint64), generate


@overload(byte_at)
def _typed_byte_at(address: Any) -> Any:
    def compiled(address: Any) -> Any:
        return _load_byte(np.uint64(address))

    return compiled


@overload(half_at)
def _typed_half_at(address: Any) -> Any:
    def compiled(address: Any) -> Any:
        return _load_half(np.uint64(address))

    return compiled


@overload(word_at)
def _typed_word_at(address: Any) -> Any:
    def compiled(address: Any) -> Any:
        return _load_word(np.uint64(address))

    return compiled


@overload(fetch)
def _typed_fetch(address: Any) -> Any:
    def compiled(address: Any) -> Any:
        return _fetch(np.uint64(address))

    return compiled


@overload(product)
def _typed_product(one: Any, other: Any) -> Any:
    def compiled(one: Any, other: Any) -> Any:
        return _product(np.uint64(one), np.uint64(other))

    return compiled
