"""JPEG: baseline scans to surfaces."""
