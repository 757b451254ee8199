"""Standards of MFX, the multi-format codec engine."""
