"""Errors of the driver: a refused ioctl, and a program that has ended."""

from __future__ import annotations

import os


class Errno(Exception):
    """Error with which an ioctl is refused: its number, and the reason for the trace."""

    def __init__(self, number: int, why: str = "") -> None:
        super().__init__(why or os.strerror(number))
        self.number = number


class Gone(Exception):
    """The program at the other end has ended."""
