"""The paper's walk: ``Frugal1U`` and ``DPFrugal1U``."""
