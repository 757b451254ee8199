"""JPEG: surfaces to baseline scans."""
