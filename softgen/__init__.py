"""softgen: Intel's Gen graphics processor as software."""

__version__ = "0.1.0"
