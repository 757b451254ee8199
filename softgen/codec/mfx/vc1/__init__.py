"""VC-1: progressive pictures of simple, main and advanced profile."""
