"""Two instructions that numba does not offer, for words of a cell: a prefetch, and one wide add and maximum.

Measured on 10^7 uniform scores and 100,800 cells: without the prefetch the scatter loop waits for memory
and takes twice as long; with the wide operations instead of six narrow ones it takes a quarter less.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba.extending import intrinsic
from numpy.typing import NDArray


def _fetch(words: NDArray[Any], first: int) -> None:
    """Ask for the cache line of ``words[first]`` without waiting for it: a hint, with no effect in Python."""


def _combine(words: NDArray[Any], first: int, addends: NDArray[Any], ends: NDArray[Any], row: int) -> None:
    """Add ``addends[4 row : 4 row + 4]`` to four words from `first` on; raise the next two to `ends`."""
    for k in range(4):
        words[first + k] += addends[4 * row + k]
    for k in range(2):
        words[first + 4 + k] = max(words[first + 4 + k], ends[2 * row + k])


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any, lanes: int) -> Any:
    """Pointer to `lanes` int64 of an array from `index` on."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), ir.VectorType(ir.IntType(64), lanes).as_pointer())


def _typed_fetch(_: Any, words: Any, first: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        line = _address(context, builder, signature.args[0], arguments[0], arguments[1], 1)
        hint = builder.module.declare_intrinsic(
            "llvm.prefetch", [pointer], ir.FunctionType(ir.VoidType(), [pointer, flag, flag, flag])
        )
        builder.call(hint, [builder.bitcast(line, pointer), flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return numba.types.void(words, numba.types.uint64), build


def _typed_combine(_: Any, words: Any, first: Any, addends: Any, ends: Any, row: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        words_type, _, addends_type, ends_type, _ = signature.args
        words, first, addends, ends, row = arguments
        four, two = (ir.Constant(first.type, lanes) for lanes in (4, 2))

        total = _address(context, builder, words_type, words, first, 4)
        part = _address(context, builder, addends_type, addends, builder.mul(row, four), 4)
        builder.store(builder.add(builder.load(total, align=8), builder.load(part, align=8)), total, align=8)

        total = _address(context, builder, words_type, words, builder.add(first, four), 2)
        part = _address(context, builder, ends_type, ends, builder.mul(row, two), 2)
        old, new = builder.load(total, align=8), builder.load(part, align=8)
        builder.store(builder.select(builder.icmp_signed(">", old, new), old, new), total, align=8)
        return context.get_dummy_value()

    index = numba.types.uint64
    return numba.types.void(words, index, addends, ends, index), build


if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
    fetch: Callable[..., None] = _fetch
    combine: Callable[..., None] = _combine
else:
    fetch, combine = intrinsic(_typed_fetch), intrinsic(_typed_combine)
