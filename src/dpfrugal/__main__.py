"""``python -m dpfrugal`` is the ``dpfrugal`` command."""

from dpfrugal.cli import main

if __name__ == "__main__":
    main()
