"""What calcore costs and how sharp it is, measured: ``python -m bench``. See README.md in this folder."""
