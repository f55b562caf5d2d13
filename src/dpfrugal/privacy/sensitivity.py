"""How far neighbours can be apart in what is released, before noise.

Worked number: three quantiles of ``DPFrugal1U`` move by at most 2 grid steps each: 6 in L1 and √12 in L2.
"""

import math
from dataclasses import dataclass

from dpfrugal.parameters import integer


@dataclass(frozen=True)
class Sensitivity:
    """How far a neighbour can move all released integers together: in L1, and in squared L2.

    ``one_number`` says that a neighbour moves one number of one release only. Then the exact δ of Theorem 6
    applies; otherwise (several quantiles, or a person's items in several releases) zCDP composes them.

    >>> import dpfrugal as dpf
    >>> two_steps = dpf.Sensitivity.of(2)
    >>> two_steps.l1, two_steps.l2, dpf.PureDP(epsilon=1.0).noise_scale(two_steps)
    (2, 2.0, 2.0)
    """

    l1: int
    l2_squared: int
    one_number: bool = False

    @classmethod
    def of(cls, sensitivity: "int | Sensitivity") -> "Sensitivity":
        """An integer is the sensitivity of one number in one release."""
        if isinstance(sensitivity, Sensitivity):
            return sensitivity
        checked = integer("sensitivity", sensitivity, 1)
        return cls(checked, checked**2, one_number=True)

    @property
    def l2(self) -> float:
        """The L2 distance, rounded up."""
        root = math.isqrt(self.l2_squared)
        return float(root) if root**2 == self.l2_squared else math.nextafter(math.sqrt(self.l2_squared), math.inf)
