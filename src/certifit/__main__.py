"""`python -m certifit` is the command `certifit`."""

from certifit.cli import main

if __name__ == "__main__":
    main()
