"""What holds for every test."""

from hypothesis import settings

# Time is measured in benchmarks, never asserted in a test: an example may take as long as the machine makes it.
settings.register_profile("dpfrugal", deadline=None)
settings.load_profile("dpfrugal")
