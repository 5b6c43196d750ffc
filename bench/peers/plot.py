#!/usr/bin/env python3
"""Kiln's rate over the best peer's, a picture of what peers.py printed.

  bench/peers/plot.py FILE.jsonl [--out ratios.svg]

One panel a case, one bar a shape, from the line at 1.0, where Kiln and the best peer take the same time: to the right
Kiln is faster. Beside a bar stand Kiln's time and rate, the ratio, and the name of the best peer. Peers whose names end
in `_bare` do less work and are not counted. A shape without Kiln's figure or without a peer has no bar; stderr says which.
Lines that are no figures of this kind are skipped. A later line takes the place of an earlier one of the
same case, shape, dtype and peer.
Exit status 1: there is nothing to draw, or a file cannot be read or written.
"""
import argparse
import json
import math
import sys
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

# The picture, in pixels: columns of text to the left and right of the bars, rows of one bar each.
LABEL, BARS, FIGURES, MARGIN = 220, 420, 330, 16
ROW, BAR, TITLE, AXIS, LEGEND = 22, 13, 34, 26, 64
LEAST_SPAN = 0.1  # of an axis
FASTER, SLOWER, INK, FAINT = "#2f7d5b", "#c2542d", "#222222", "#d9d9d9"


@dataclass
class Shape:
    """The figures of one shape, {peer: line}."""

    lines: dict = field(default_factory=dict)

    def best(self):
        """The fastest peer that does all of the work; None where there is none."""
        peers = [p for p in self.lines if p != "kiln" and not p.endswith("_bare")]
        return min(peers, key=lambda p: self.lines[p]["us"], default=None)

    def ratio(self):
        return self.lines[self.best()]["us"] / self.lines["kiln"]["us"]


def figures(file):
    """The lines of peers.py among those of `file`, which may have others beside them."""
    for text in file:
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and {"case", "peer", "dtype"} <= line.keys() and line.get("us", 0) > 0 and line.get("shape"):
            yield line


def cases_of(lines):
    """{"case, dtype": {shape: Shape}} of what can be compared, in the order of the lines."""
    cases = {}
    for line in lines:
        shapes = cases.setdefault(f"{line['case']}, {line['dtype']}", {})
        shapes.setdefault(tuple(line["shape"]), Shape()).lines[line["peer"]] = line
    for name, shapes in cases.items():
        for shape in [s for s, figure in shapes.items() if "kiln" not in figure.lines or figure.best() is None]:
            print(f"plot.py: {name} {words(shape)}: no figure of {'Kiln' if 'kiln' not in shapes[shape].lines else 'a peer'}", file=sys.stderr)
            del shapes[shape]
    return {name: shapes for name, shapes in cases.items() if shapes}


def words(shape):
    return " × ".join(map(str, shape))


def step_for(span):
    """The distance of the marks on an axis of this length: 1, 2 or 5 of a power of ten, at most eight of them."""
    power = 10 ** math.floor(math.log10(span / 8))
    return next(power * m for m in (1, 2, 5, 10) if span / (power * m) <= 8)


class Axis:
    """Ratios of one panel to pixels; 1.0 and every ratio are on it."""

    def __init__(self, ratios):
        low, high = min([*ratios, 1.0]), max([*ratios, 1.0])
        self.step = step_for(max(high - low, LEAST_SPAN))
        self.first, self.last = math.floor(low / self.step + 1e-9), math.ceil(high / self.step - 1e-9)
        while (self.last - self.first) * self.step < LEAST_SPAN:  # noise looks small
            self.first, self.last = self.first - 1, self.last + 1

    def marks(self):
        return [i * self.step for i in range(self.first, self.last + 1)]

    def x(self, ratio):
        return MARGIN + LABEL + BARS * (ratio / self.step - self.first) / (self.last - self.first)


def text(x, y, what, anchor="start", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(what)}</text>'


def line(x1, y1, x2, y2, colour, width=1):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'


def rate(figure):
    """TFLOP/s of a product [M, N, K], else GB/s."""
    shape, us = figure["shape"], figure["us"]
    if len(shape) == 3 and figure["case"].startswith(("linear", "matmul")):
        return f"{2 * math.prod(shape) / us / 1e6:.0f} TFLOP/s"
    return f"{figure['gbs']:.0f} GB/s" if "gbs" in figure else ""


def time(us):
    return f"{us:.0f} µs" if us >= 1000 else f"{us:.4g} µs"


def bar(axis, y, shape, figure):
    """One shape: its name, the bar from 1.0 to its ratio, and the figures."""
    ratio, kiln, best = figure.ratio(), figure.lines["kiln"], figure.best()
    left, right = sorted([axis.x(1.0), axis.x(ratio)])
    base, beside = y + ROW / 2 + 4, MARGIN + LABEL + BARS + 12
    described = f"{words(shape)}: Kiln {time(kiln['us'])}, {best} {time(figure.lines[best]['us'])}"
    yield (f'<rect x="{left:.1f}" y="{y + (ROW - BAR) / 2:.1f}" width="{max(right - left, 1):.1f}" height="{BAR}" '
           f'fill="{FASTER if ratio >= 1 else SLOWER}"><title>{escape(described)}</title></rect>')
    yield text(MARGIN + LABEL - 10, base, words(shape), "end")
    yield text(beside + 40, base, f"{ratio:.3f}", "end", ' font-weight="bold"')
    yield text(beside + 50, base, best)
    yield text(beside + FIGURES - 24, base, f"Kiln {time(kiln['us'])}{', ' if rate(kiln) else ''}{rate(kiln)}", "end")


def panel(y, name, shapes):
    axis = Axis([figure.ratio() for figure in shapes.values()])
    top, bottom = y + TITLE, y + TITLE + ROW * len(shapes)
    yield text(MARGIN, y + TITLE - 10, name, more=' font-size="15" font-weight="bold"')
    for mark in axis.marks():
        yield line(axis.x(mark), top, axis.x(mark), bottom, FAINT)
        yield text(axis.x(mark), bottom + 15, f"{mark:.{max(0, -math.floor(math.log10(axis.step) + 1e-9))}f}", "middle", ' fill="#666666"')
    for row, (shape, figure) in enumerate(shapes.items()):
        yield from bar(axis, top + ROW * row, shape, figure)
    yield line(axis.x(1.0), top - 4, axis.x(1.0), bottom + 3, INK, 1.5)


def svg(cases):
    """The picture, as text."""
    width = 2 * MARGIN + LABEL + BARS + FIGURES
    parts, y = [], LEGEND
    for name, shapes in cases.items():
        parts += panel(y, name, shapes)
        y += TITLE + ROW * len(shapes) + AXIS
    y += MARGIN
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" viewBox="0 0 {width} {y}" '
        f'font-family="sans-serif" font-size="12" fill="{INK}">',
        f'<rect width="{width}" height="{y}" fill="#ffffff"/>',
        text(MARGIN, 30, "Kiln's rate over the best peer's, by shape", more=' font-size="19" font-weight="bold"'),
        text(MARGIN, 50, "1.0: the same time; right of it Kiln is faster. The best peer is named beside each bar."),
        *parts, "</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description="a picture of the ratios that bench/peers/peers.py measured")
    parser.add_argument("file", help="the JSON lines of peers.py")
    parser.add_argument("--out", default="ratios.svg", help="default: %(default)s")
    args = parser.parse_args()
    try:
        with open(args.file, encoding="utf-8") as file:
            cases = cases_of(figures(file))
        if not cases:
            sys.exit(f"plot.py: {args.file} has no shape with figures of both Kiln and a peer")
        with open(args.out, "w", encoding="utf-8") as out:
            out.write(svg(cases))
    except OSError as e:
        sys.exit(f"plot.py: {e}")


if __name__ == "__main__":
    main()
