"""Six open-air scenes: clouds, water, grass, dunes, trunks, ridges."""

import numpy as np

from heatproof.data.two_factor.canvas import Canvas, Painting
from heatproof.data.two_factor.dice import Dice, Floats
from heatproof.data.two_factor.noise import PERIOD, fractal, line, smooth, step


def clouds(dice: Dice, canvas: Canvas) -> Painting:
    """Cumulus under a sky dome: larger overhead, smaller towards the horizon, lit from above."""
    table = dice.table(PERIOD, PERIOD)
    zoom = dice.uniform(1.5, 2.1)
    away = zoom / (0.45 + 0.75 * (1 - canvas.y))
    u = (canvas.x - 0.5) * 1.5 * away + 16 + dice.uniform(0, 8)
    v = away * 2.2 + dice.uniform(0, 8)
    warp = smooth(table, u * 1.7 + 3.1, v * 1.7 + 8.2) - 0.5
    thickness = fractal(table, u + 0.3 * warp, v + 0.2 * warp, 5)
    above = fractal(table, u + 0.3 * warp, v - 0.3 + 0.2 * warp, 3)
    cover = dice.uniform(0.42, 0.50)
    cloud = step(cover - 0.03, cover + 0.12, thickness)
    sky = 0.30 + 0.28 * canvas.y
    lit = 0.86 + 0.9 * (thickness - above) - 0.55 * step(cover + 0.10, cover + 0.45, thickness)
    return Painting(sky * (1 - cloud) + lit * cloud, cloud)


def water(dice: Dice, canvas: Canvas) -> Painting:
    """Waves in perspective below a low sun, with its glitter path."""
    table = dice.table(PERIOD, PERIOD)
    horizon, sun = dice.uniform(0.14, 0.30), dice.uniform(0.2, 0.8)
    below = canvas.y > horizon
    depth = np.maximum((canvas.y - horizon) / (1 - horizon), 0.0)
    away = 1 / (depth + 0.10)
    u = (canvas.x - 0.5) * away * 1.6 + 16
    v = depth * dice.uniform(7.0, 10.0) - away * dice.uniform(1.6, 2.2) + 32
    sway = smooth(table, u * 0.8 + 4.5, v * 0.35 + 7.1) - 0.5
    wave = 1 - np.abs(2 * smooth(table, u, v + 1.2 * sway) - 1)
    fine = smooth(table, u * 2.3 + 9.0, v * 2.3)
    crest = 0.7 * wave + 0.3 * fine
    path = np.exp(-(((canvas.x - sun) / (0.09 + 0.16 * depth)) ** 2))
    sea = 0.30 + 0.20 * (1 - depth) + (0.55 * crest - 0.28) + 0.75 * path * step(0.45, 0.8, crest)
    disc = np.hypot(canvas.x - sun, canvas.y - horizon + dice.uniform(0.01, 0.06))
    sky = 0.62 + 0.16 * canvas.y / horizon + 0.35 * step(-0.085, -0.07, -disc) + 0.15 * np.exp(-disc * 6)
    tint = np.where(below, 0.15 + 0.3 * path * crest, 0.9 - 0.3 * canvas.y)
    return Painting(np.where(below, sea, sky), tint)


def grass(dice: Dice, canvas: Canvas) -> Painting:
    """A meadow seen from low down: rows of leaning blades, the nearest tallest."""
    table = dice.table(PERIOD, PERIOD)
    wind = dice.uniform(-0.5, 0.5)
    tone = 0.80 + 0.08 * fractal(table, canvas.x * 3, canvas.y * 6, 2)
    tint = np.full_like(tone, 0.95)
    rows = 7
    for row in range(rows):
        near = row / (rows - 1)
        base = 0.30 + 0.95 * near
        tall, width = 0.24 + 0.36 * near, 0.06 + 0.09 * near
        rise = np.clip((base - canvas.y) / tall, 0.0, 2.0)
        for shift in (0.0, 0.5):
            lean = (wind + 0.5 - shift * 2 + 0.5 * (row % 2)) * 0.35 * tall * rise**2
            place = (canvas.x - lean) / width + shift + row * 3.7
            index = np.floor(place).astype(np.int64) & (PERIOD - 1)
            drawn = table[row + int(16 * shift), index]
            height = 0.55 + 0.45 * drawn
            half = 0.40 * (1 - rise / height)
            across = place - np.floor(place) - 0.5
            blade = (np.abs(across) < half) & (canvas.y < base + 0.1)
            own = 0.24 * (table[index, row] - 0.5)
            light = 0.28 - 0.12 * near + 0.50 * rise / height + own + 0.35 * across
            tone = np.where(blade, light, tone)
            tint = np.where(blade, 0.35 * drawn * rise, tint)
    return Painting(tone, tint)


def dunes(dice: Dice, canvas: Canvas) -> Painting:
    """Sand dunes one behind the other: a bright face, a shaded face, wind ripples."""
    table = dice.table(PERIOD, PERIOD)
    side = dice.sign()
    x = canvas.x if side > 0 else 1 - canvas.x
    top = dice.uniform(0.18, 0.30)
    tone, tint = 0.62 + 0.5 * canvas.y, np.full_like(canvas.y, 0.95)
    for row in range(4):
        near = row / 3
        peak = dice.uniform(0.0, 1.0) * 0.5 + 0.5 * ((row * 0.618 + 0.2) % 1)
        base = top + 0.58 * near**1.2 + dice.uniform(-0.03, 0.03)
        spread, tall = 0.34 + 0.25 * near, 0.13 + 0.10 * near
        distance = (x - peak) / spread
        windward, lee = np.exp(-1.6 * distance**2), np.exp(-2.6 * np.abs(distance))
        crest = base - tall * np.where(distance < 0, windward, lee)
        crest = crest + 0.03 * (line(table[row], x * 2.5 + 3.0) - 0.5)
        down = canvas.y - crest
        spine = peak + 0.10 * np.sin(down * (9 - 3 * near) + row) + (0.35 + 0.3 * near) * down
        shade = step(-0.012, 0.012, x - spine) * np.exp(-down * (2.4 - near))
        wind = down * 1.2 + 0.25 * x + 0.10 * smooth(table, x * 4, canvas.y * 5)
        ripple = np.sin(wind * (95 - 45 * near))
        sand = 0.78 - 0.50 * shade - 0.28 * down + 0.07 * ripple * (1 - shade) * (0.4 + 0.6 * near)
        here = down > 0
        tone = np.where(here, sand, tone)
        tint = np.where(here, 0.12 + 0.4 * shade * (1 - near), tint)
    return Painting(tone, tint)


def trunks(dice: Dice, canvas: Canvas) -> Painting:
    """A wood in mist: thin pale stems far away, thick dark ones with bark near by."""
    table = dice.table(PERIOD, PERIOD)
    light = dice.sign()
    floor = dice.uniform(0.66, 0.76)
    mist = 0.78 - 0.12 * canvas.y + 0.12 * (fractal(table, canvas.x * 4, canvas.y * 4, 3) - 0.5)
    litter = 0.62 - 0.75 * (canvas.y - floor) + 0.35 * (fractal(table, canvas.x * 9, canvas.y * 24, 3) - 0.5)
    ground = canvas.y > floor
    tone = np.where(ground, litter, mist)
    tint = np.where(ground, 0.45, 0.9) + np.zeros_like(tone)
    wide = canvas.x.size
    for row, (count, width) in enumerate(((9, 0.035), (6, 0.065), (3, 0.125))):
        near = row / 2
        bottom = floor + 0.02 + 0.22 * near
        for stem in range(count):
            middle = (stem + dice.uniform(0.15, 0.85)) / count
            slope, girth = dice.uniform(-0.06, 0.06), width * dice.uniform(0.75, 1.25)
            reach = 1.2 * girth + 0.04
            columns = slice(max(int((middle - reach) * wide), 0), max(int((middle + reach) * wide), 0))
            flare = 1 + 1.2 * np.exp(-np.maximum(bottom - canvas.y, 0) * 16)
            across = (canvas.x[:, columns] - middle - slope * (canvas.y - 0.5)) / (girth * flare * 0.5)
            v = canvas.y * (5 + 3 * near) + 3 * stem
            bark = (0.12 + 0.18 * near) * (smooth(table, across * (1 + 1.5 * near) + 7 * stem, v) - 0.5)
            stem_tone = 0.56 - 0.34 * near + 0.17 * light * across - 0.10 * across**2 + bark
            here = (np.abs(across) < 1) & (canvas.y < bottom + 0.012 * (1 - across**2))
            tone[:, columns] = np.where(here, stem_tone, tone[:, columns])
            tint[:, columns] = np.where(here, 0.75 - 0.7 * near, tint[:, columns])
    return Painting(tone, tint)


def ridges(dice: Dice, canvas: Canvas) -> Painting:
    """Mountain ranges fading into the distance, snow on the farthest, a sun or moon above."""
    table = dice.table(PERIOD, PERIOD)
    light = dice.sign()
    sun_x, sun_y = dice.uniform(0.1, 0.9), dice.uniform(0.06, 0.18)
    disc = np.hypot(canvas.x - sun_x, canvas.y - sun_y)
    tone = 0.70 + 0.30 * canvas.y + 0.25 * step(-0.075, -0.06, -disc)
    tint = np.full_like(tone, 0.95)
    start = dice.uniform(0.06, 0.14)
    for row in range(4):
        near = row / 3
        heights = _peaks(table[row], canvas.x * (3.2 - 0.6 * near) + dice.uniform(0, 9))
        crest = start + 0.20 + 0.56 * near**1.1 - (0.52 - 0.16 * near) * (heights - 0.45)
        down = canvas.y - crest
        # each face is lit or shaded by which way the crest above it falls; gullies break the edge
        u = canvas.x * 7 + light * down * 5
        gully = fractal(table, u + 3 * row, canvas.y * 3 + 5 * row, 3) - 0.5
        rock = 0.60 - 0.42 * near + (0.75 - 0.35 * near) * gully * np.exp(-down * 2) + 0.25 * down
        snow = step(-0.03, 0.03, 0.09 - 0.04 * row + 0.45 * gully - down) * (row < 2) * (0.95 - 0.3 * row)
        here = down > 0
        tone = np.where(here, rock * (1 - snow) + (0.98 + 0.9 * gully) * snow, tone)
        tint = np.where(here, 0.75 - 0.72 * near, tint)
    return Painting(tone, tint)


def _peaks(row: Floats, u: Floats) -> Floats:
    """A jagged skyline: straight slopes between random heights, with smaller peaks on them."""
    total = np.zeros_like(u)
    for octave in range(4):
        w = u * 2**octave + 5.3 * octave
        w0 = np.floor(w)
        i = w0.astype(np.int64) & (PERIOD - 1)
        total += 0.48**octave * (row[i] * (1 - w + w0) + row[(i + 1) & (PERIOD - 1)] * (w - w0))
    return total / 1.8
