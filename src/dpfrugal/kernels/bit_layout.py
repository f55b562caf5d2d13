"""Constants that kernels share with their callers; importing them does not load the compiler."""

from typing import Final

# The byte of a key's step (``estimators.keyed.adaptive_steps``): a step is 2^e grid units, e in the lower bits.
STEP_EXPONENT: Final = 0b0001_1111
# The largest prime below 2^61, a Mersenne prime: strings of bytes are hashed in its field.
PRIME: Final = 2**61 - 1
# A slot of the table of strings (``keys.hash_tables``) keeps the key's length in its lower bits, its place above them.
LENGTH_BITS: Final = 20
LONGEST_KEY: Final = (1 << LENGTH_BITS) - 1
# Cumulative masses (``estimators.table.spreads``) are pairs high·2^bits + low: evenly spread, and over binades.
EVEN_BITS: Final = 32
UNIT_BITS: Final = 63
# The number of 64-bit words that a choice per group may use before it is made again one by one; kinds of components.
WORDS: Final = 16
EVERY_CODE, MULTIPLES, DECIMALS, SIZES, POWERS_OF_TWO, BESIDE = range(6)
EVEN, BINADES, SINGLE = range(3)

# The margins of ``privacy.choice``, which kernels restate so that the digest of their sources covers them.
FLOAT_ERROR: Final = 2.0**-40
SUM_ERROR: Final = 2.0**-50
SMALLEST_TOTAL: Final = 2.0**-600
LARGEST_TOTAL: Final = 2.0**1000
