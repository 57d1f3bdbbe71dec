"""`python -m trueloop`: the command line, also under `torchrun -m`."""

from trueloop.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
