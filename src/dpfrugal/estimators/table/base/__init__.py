"""What may be answered: codes, the mass of each before any row is looked at, and the types of columns."""
