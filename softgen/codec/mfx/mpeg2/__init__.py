"""MPEG-2: slices of frame and field pictures to surfaces."""
