"""Which key a row belongs to, which keys may be shown, and how many rows of a person count."""
