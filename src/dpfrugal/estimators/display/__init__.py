"""How releases look in a notebook: tables in HTML, and pictures. Drawn from released values only."""
