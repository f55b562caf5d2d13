"""What has been spent on a dataset: the ledger, its file, and how guarantees compose."""
