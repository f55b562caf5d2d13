"""The paper's experiments again: every table and figure of *Space-Efficient Private Estimation of Quantiles*.

``dpfrugal paper`` runs them. Streams and coins are seeded and recorded; the noise is real and cannot be seeded, so two
runs agree in everything but the noise.
"""
