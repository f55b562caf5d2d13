"""Faults on purpose: generated inputs, killed processes, full and read-only disks, flipped bytes. ``make soak`` runs it all."""
