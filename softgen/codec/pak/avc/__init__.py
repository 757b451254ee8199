"""H.264: macroblocks that were decided, as slices of a stream."""
