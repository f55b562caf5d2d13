"""Generated inputs: seeds of every kind, cut, flipped, repeated and spliced at random, the same for the same seed."""

import random

TOKENS = (
    *(
        b"\n",
        b"\r\n",
        b",",
        b'"',
        b"\t",
        b" ",
        b"-",
        b"+",
        b".",
        b"e",
        b"_",
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b"{",
        b"}",
        b":",
    ),
    *(
        b"nan",
        b"NaN",
        b"inf",
        b"-inf",
        b"Infinity",
        b"null",
        b"NULL",
        b"1e999",
        b"-0",
        b"0x10",
        b"1_000",
        b"1e-400",
        b"N/A",
    ),
    *(
        b"9223372036854775808",
        b"18446744073709551616",
        b"1" * 400,
        b"value",
        b'{"value": 1}',
        "٣".encode(),
        "\u2028".encode(),
    ),
)


def mutated(rng: random.Random, seeds: list[bytes], most: int = 4096) -> bytes:
    """One to eight changes of a seed."""
    data = bytearray(rng.choice(seeds))
    for _ in range(1 + int(rng.random() * rng.random() * 8)):
        kind, at = rng.random(), int(rng.random() * (len(data) + 1))
        if kind < 0.25 and data:
            data[min(at, len(data) - 1)] ^= 1 << int(rng.random() * 8)
        elif kind < 0.5:
            data[at:at] = rng.choice(TOKENS)
        elif kind < 0.6:
            data[at:at] = rng.randbytes(1 + int(rng.random() * 8))
        elif kind < 0.75:
            del data[at : at + 1 + int(rng.random() * rng.random() * len(data))]
        elif kind < 0.85:
            data[at:at] = data[at : at + int(rng.random() * 64)] * (1 + int(rng.random() * 3))
        elif kind < 0.95:
            other = rng.choice(seeds)
            data[at:] = other[int(rng.random() * (len(other) + 1)) :]
        else:
            del data[at:]
    return bytes(data[:most])
