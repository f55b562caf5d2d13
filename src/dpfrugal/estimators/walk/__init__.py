"""The paper's algorithms, ``Frugal1U`` and ``DPFrugal1U``: an estimate that moves one grid step at a time."""
