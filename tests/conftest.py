"""Time is measured in benchmarks, never asserted in a test: Hypothesis watches the clock unless told otherwise."""

from hypothesis import HealthCheck, settings

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
