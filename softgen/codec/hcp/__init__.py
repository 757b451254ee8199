"""Standards of HCP, the video engine's pipe of Skylake and later: one folder for each."""
