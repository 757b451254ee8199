"""Line plots as SVG: a few lines over factors of the smallest size, both axes logarithmic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 320, 60, 20, 200, 40
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")  # told apart by colour-blind readers, too
TICKS = (0.125, 0.25, 0.5, 1, 2, 4, 8)


def plot(lines: Mapping[str, Sequence[float]], factors: Sequence[int], title: str) -> str:
    """Lines by name, a value for each factor."""
    most = max(2.0, *(value for values in lines.values() for value in values))
    least = min(0.5, *(value for values in lines.values() for value in values))
    ticks = [tick for tick in TICKS if least <= tick <= most]

    def x(factor: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(factor / factors[0]) / math.log(factors[-1] / factors[0])

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - math.log(value / least) / math.log(most / least))

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
             f"<title>{title}</title>", f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']  # fmt: skip
    for tick in ticks:
        parts.append(f'<path d="M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
                     f'<text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')  # fmt: skip
    parts += [f'<text x="{x(factor):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{factor}x</text>' for factor in factors]
    parts.append(f'<text x="{LEFT}" y="{TOP - 6}">{title}</text>')
    for number, (name, values) in enumerate(lines.items()):
        color = COLORS[number % len(COLORS)]
        points = " ".join(f"{x(factor):.1f},{y(value):.1f}" for factor, value in zip(factors, values, strict=True))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>'
                     f'<text x="{WIDTH - RIGHT + 10}" y="{TOP + 16 * (number + 1)}" fill="{color}">{name}</text>')  # fmt: skip
    return "\n".join([*parts, "</svg>", ""])
