"""Extended math: functions of floats and integer division.

functions.py  the functions as lane programs; the math instruction of later generations uses them too
unit.py       the shared function of Gen4.5
"""
