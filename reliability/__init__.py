"""Faults on purpose: generated inputs, killed processes, bad disks, flipped bytes. ``make soak`` runs it all."""
