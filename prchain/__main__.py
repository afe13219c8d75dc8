"""`python -m prchain` is `prchain`, also where the script is not on the PATH."""

from prchain.cli import main

if __name__ == "__main__":
    main()
