"""Rules that software has to keep, which are reported where it does not.

software_rules.py   rules of Gen4.5's state; state_rules.py those of later generations
geometry_rules.py   those of geometry shaders, and of URB entries that they and tessellation need
stage_rules.py      those of Ice Lake's stages with threads: what must be mapped, fit, or come first
urb_fences.py       whether the URB entries of Gen4.5's stages fit between their fences; urb_regions.py the same of later generations
command_rules.py    what must have come before a draw of Ice Lake, and again after a change of bases
constant_rules.py   when push constants must come again
"""
