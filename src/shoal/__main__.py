"""``python -m shoal`` is the command line."""

from shoal.cli.main import run

if __name__ == "__main__":
    run()
