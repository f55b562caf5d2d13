"""Benchmarks: ratios inside one run, with the machine and the versions kept beside the figures. See README.md."""
