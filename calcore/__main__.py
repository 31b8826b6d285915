"""``python -m calcore``: the command `calcore`."""

from calcore.cli import main

if __name__ == "__main__":
    main()
