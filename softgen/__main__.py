"""`python -m softgen` is the same as `softgen`."""

import sys

from softgen.inspect.cli.main import main

sys.exit(main())
