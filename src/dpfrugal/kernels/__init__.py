"""Compiled loops. Each names the readable function that it must equal, bit for bit."""
