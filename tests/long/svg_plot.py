"""Curves as an SVG file, without a plotting library."""
import math

COLOURS = ["#1f4e9e", "#d1603d", "#3a8a3f", "#7a4fa3"]
FONT = 'font-family="sans-serif" font-size="12" fill="#333"'


def ticks(low, high, count=5):
    rough = (high - low) / count
    power = 10 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, int(high / step + 1e-9) + 1)]


def panel(left, top, width, height, title, curves, logarithmic=False, limit=None):
    """curves: {name: [(x, y), ...]}; `limit` is a dashed horizontal line (name, y)."""
    curves = {name: [(x, y) for x, y in points if not logarithmic or y > 0] for name, points in curves.items()}
    value = math.log10 if logarithmic else float
    xs = [x for points in curves.values() for x, _ in points]
    ys = [value(y) for points in curves.values() for _, y in points] + ([value(limit[1])] if limit else [])
    low, high = min(ys), max(ys)
    if logarithmic:
        low, high = math.floor(low), math.ceil(high + 1e-9)
    if low == high:
        low, high = low - 1, high + 1

    def place(x, y):
        return (left + (x - min(xs)) / max(1, max(xs) - min(xs)) * width,
                top + height - (value(y) - low) / (high - low) * height)

    parts = [f'<text x="{left}" y="{top - 10}" {FONT} font-weight="bold">{title}</text>',
             f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#999"/>']
    for tick in ([10.0 ** k for k in range(low, high + 1)] if logarithmic else ticks(low, high)):
        y = place(min(xs), tick)[1]
        parts.append(f'<line x1="{left}" x2="{left + width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" {FONT} text-anchor="end">{tick:g}</text>')
    for tick in ticks(min(xs), max(xs)):
        x = place(tick, 10.0 ** low if logarithmic else low)[0]
        parts.append(f'<text x="{x:.1f}" y="{top + height + 16}" {FONT} text-anchor="middle">{tick:g}</text>')
    for k, (name, points) in enumerate(curves.items()):
        line = " ".join("{:.1f},{:.1f}".format(*place(x, y)) for x, y in points)
        dashes = ' stroke-dasharray="5 4"' if k % 2 else ""
        parts.append(f'<polyline points="{line}" fill="none" stroke="{COLOURS[k]}" stroke-width="1.4"{dashes}/>')
        parts.append(f'<text x="{left + width - 8}" y="{top + 18 + 16 * k}" {FONT} text-anchor="end" '
                     f'style="fill:{COLOURS[k]}">{name}</text>')
    if limit:
        y = place(min(xs), limit[1])[1]
        parts.append(f'<line x1="{left}" x2="{left + width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#b00" stroke-dasharray="2 3"/>')
        parts.append(f'<text x="{left + 6}" y="{y - 5:.1f}" {FONT}>{limit[0]}</text>')
    return "\n".join(parts)


def write(path, panels, width=760, height=260):
    """panels: keyword arguments of `panel` without its place, one below the other."""
    total = len(panels) * (height + 70) + 10
    body = "\n".join(panel(70, 40 + i * (height + 70), width - 90, height, **p) for i, p in enumerate(panels))
    with open(path, "w") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{total}" viewBox="0 0 {width} {total}">\n'
                   f'<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n')
