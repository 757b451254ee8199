"""H.264: slices of frames and fields to surfaces."""
