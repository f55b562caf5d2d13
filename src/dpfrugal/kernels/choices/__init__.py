"""Compiled choices for many groups of rows; their readable twins are in ``estimators.table``."""
