"""What is promised and the noise that keeps it. The only package that imports OpenDP."""
