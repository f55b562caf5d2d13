"""``dpfrugal watch``: periods of standard input, and what is printed of them."""
