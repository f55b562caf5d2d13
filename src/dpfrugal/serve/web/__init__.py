"""HTTP: bodies within bounds, what each path does, and servers that slow clients cannot hold."""
