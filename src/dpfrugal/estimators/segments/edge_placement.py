"""Where to put an edge between two numbers, when neither the unit nor the scale of the data is known."""

import math


def between(low: float, high: float, part: float) -> float:
    """The number ``part`` of the way from ``low`` to ``high``: by ratios where they span magnitudes.

    >>> between(1.0, 100.0, 0.5), between(50.0, 100.0, 0.5)
    (10.000000000000002, 75.0)
    """
    if 0 < 4 * low < high:
        low = max(low, high * 2.0**-40)
        return low * math.exp(part * math.log(high / low))
    if low < 4 * high < 0:
        return -between(-high, -low, 1 - part)
    return low + (high - low) * part


def after(number: float) -> float:
    """The next number that a float can hold: between the two lies the first and nothing else."""
    return math.nextafter(number, math.inf)


def roundest(low: float, high: float) -> float | None:
    """The number with the fewest digits strictly between two others: where ties would be.

    >>> roundest(0.41, 0.57), roundest(17.2, 31.0), roundest(-3.0, 8.0)
    (0.5, 20.0, 0.0)
    """
    if low < 0 < high:
        return 0.0
    if not 0 < high - low < 1e300:
        return None
    top = math.floor(math.log10(high - low)) + 1
    for power in range(top, max(top - 4, -300), -1):
        number = multiple_of(10.0**power, low + 10.0**power / 2)
        for candidate in (number, multiple_of(10.0**power, number + 10.0**power)):
            if low < candidate < high:
                return candidate
    return None


def multiple_of(unit: float, number: float) -> float:
    """The multiple of a power of ten that is nearest to ``number``, as exact as a float can be."""
    if unit >= 1:
        return round(number / unit) * unit
    parts = round(1 / unit)
    return round(number * parts) / parts if math.isfinite(number * parts) else number


def decimal_near(spacing: float) -> float | None:
    """The power of ten that a rough ``spacing`` must mean, if it is near one: 0.01 for 0.012, None for 0.03."""
    if not 1e-300 < spacing < 1e300:
        return None
    unit = 10.0 ** round(math.log10(spacing))
    return unit if 0.6 < spacing / unit < 1.6 else None


def power_of_ten_up_to(number: float) -> float:
    """The largest power of ten that ``number`` reaches; 0 where it is too small or too large to matter.

    >>> power_of_ten_up_to(4.2), power_of_ten_up_to(0.0)
    (1.0, 0.0)
    """
    return 10.0 ** math.floor(math.log10(number)) if 1e-300 < number < 1e300 else 0.0


def logit(share: float) -> float:
    """The scale on which both tails of most distributions are nearly straight."""
    return math.log(share / (1 - share))
