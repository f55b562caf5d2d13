"""The paper's experiments, reproduced: every table and figure of *Space-Efficient Private Estimation of Quantiles*.

``dpfrugal paper`` runs them. Streams and coins are seeded, and the seeds recorded; the noise cannot be seeded, so two
runs differ in the noise only.
"""
