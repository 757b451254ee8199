"""The command line: `main` finds the verb, each verb is one file with `add` and `run`, `output` is their shared look."""
