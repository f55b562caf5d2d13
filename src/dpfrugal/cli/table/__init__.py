"""What the commands quantile, describe and demo share: reading, options, output and pictures of tables."""
