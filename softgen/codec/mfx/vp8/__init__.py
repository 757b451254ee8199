"""VP8: pictures to surfaces."""
