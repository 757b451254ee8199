"""`python -m softgen` is the same as `softgen`."""

from softgen.inspect.cli.main import command

command()
