"""``python -m calcore``: the command `calcore`."""

from calcore.cli import entry

if __name__ == "__main__":
    entry()
