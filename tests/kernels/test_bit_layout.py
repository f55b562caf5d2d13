"""What kernels restate is what it stands for."""

from dpfrugal.kernels import bit_layout
from dpfrugal.privacy import choice


def test_bit_layout__margins_are_those_of_the_exact_choice() -> None:
    for name in ("FLOAT_ERROR", "SUM_ERROR", "SMALLEST_TOTAL", "LARGEST_TOTAL"):
        assert getattr(bit_layout, name) == getattr(choice, name)
