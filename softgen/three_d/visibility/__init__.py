"""Visibility: draws of the position-only pipe recorded object by object, and what they culled left out of the render pipe's draws.

streams.py    streams of visibility in memory: where they are, written and read
recording.py  POSH draws: VFR, VSR, CLR, SFR and OVR (recording.c, recording.h), which records what CLR and SFR leave
skipping.py   the render pipe's draws of visible objects alone
"""
