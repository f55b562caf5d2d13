"""Guarantees and the noise that they need. The only package that imports OpenDP."""
