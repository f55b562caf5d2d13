"""What commands show beside their results: notes, progress, usage errors; and how files are written."""
