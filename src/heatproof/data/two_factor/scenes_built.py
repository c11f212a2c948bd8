"""Four scenes with a pattern: bricks, pebbles, tiles in perspective, a city at night."""

import numpy as np

from heatproof.data.two_factor.canvas import Canvas, Painting
from heatproof.data.two_factor.dice import Dice
from heatproof.data.two_factor.noise import PERIOD, cell, fractal, smooth, step


def bricks(dice: Dice, canvas: Canvas) -> Painting:
    """A wall in running bond, seen a little from the side, the light falling off along it."""
    table = dice.table(PERIOD, PERIOD)
    rows, slant, turn = dice.uniform(7.0, 10.0), dice.uniform(-0.35, 0.35), dice.uniform(-0.06, 0.06)
    x, y = canvas.x - 0.5, canvas.y - 0.5
    nearer = 1 + slant * x
    v = (y + turn * x) / nearer * rows + 16
    row = np.floor(v)
    u = x / nearer * rows * 0.42 + 0.5 * (row % 2) + 16
    fu, fv = u - np.floor(u), v - row
    # distance to the joint in units of a brick's height
    edge_u, edge_v = np.minimum(fu, 1 - fu) / 0.42, np.minimum(fv, 1 - fv)
    joint = step(0.06, 0.14, np.minimum(edge_u, edge_v))
    own, other = cell(table, u, v), cell(table, u + 11, v + 5)
    relief = 0.16 * (step(0.0, 0.3, fv) - step(0.7, 1.0, fv)) - 0.08
    rough = fractal(table, u * 4, v * 2, 2) - 0.5
    brick = 0.42 + 0.38 * (own - 0.5) - relief + 0.30 * rough
    light = 0.30 * dice.sign() * x - 0.12 * y
    tint = (0.15 + 0.45 * other) * joint + 0.8 * (1 - joint)
    return Painting(0.80 * (1 - joint) + brick * joint + light, tint)


def pebbles(dice: Dice, canvas: Canvas) -> Painting:
    """Rounded stones (a Voronoi pattern), smaller further up the beach, lit from one side."""
    table, tones = dice.table(PERIOD, PERIOD, 2), dice.table(PERIOD, PERIOD)
    count, light_x = dice.uniform(5.0, 6.8), dice.uniform(-0.7, 0.7)
    nearer = 0.70 + 0.55 * canvas.y
    u = (canvas.x - 0.5) / nearer * count + 16
    v = -count * np.log(1.30 - 0.62 * canvas.y) * 1.7 + 8
    u0, v0 = np.floor(u), np.floor(v)
    i, j = u0.astype(np.int64), v0.astype(np.int64)
    first = np.full(u.shape, 9.0)
    second, dx, dy, own = first.copy(), first.copy(), first.copy(), first.copy()
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            near_i, near_j = (i + right) & (PERIOD - 1), (j + down) & (PERIOD - 1)
            off_x = u - u0 - right - 0.14 - 0.72 * table[near_j, near_i, 0]
            off_y = v - v0 - down - 0.14 - 0.72 * table[near_j, near_i, 1]
            distance = np.sqrt(off_x**2 + off_y**2)
            closer = distance < first
            second = np.where(closer, first, np.minimum(second, distance))
            dx, dy = np.where(closer, off_x, dx), np.where(closer, off_y, dy)
            own = np.where(closer, tones[near_j, near_i], own)
            first = np.where(closer, distance, first)
    gap = step(0.02, 0.26, second - first)
    dome = 0.55 * (light_x * dx - 0.75 * dy) + 0.20 * step(0.0, 0.7, second - first)
    shine = 0.30 * np.exp(-((dx - 0.22 * light_x) ** 2 + (dy + 0.2) ** 2) * 22)
    grain = 0.16 * (smooth(tones, u * 5, v * 5) - 0.5)
    stone = 0.48 + 0.45 * (own - 0.5) + dome + shine + grain
    return Painting(0.05 * (1 - gap) + stone * gap, np.clip(own * 1.5 - 0.3, 0, 1) * gap)


def tiles(dice: Dice, canvas: Canvas) -> Painting:
    """A chequered floor running to a wall, with a sheen on the floor."""
    table = dice.table(PERIOD, PERIOD)
    horizon, vanish = dice.uniform(0.10, 0.22), dice.uniform(0.25, 0.75)
    foot = horizon + dice.uniform(0.09, 0.14)
    turn = np.deg2rad(dice.uniform(0.0, 90.0))
    size = dice.uniform(1.5, 2.1)
    floor = canvas.y > foot
    away = 1 / np.maximum(canvas.y - horizon, foot - horizon)
    right, deep = (canvas.x - vanish) * away * size, away * size * 0.8
    u = np.cos(turn) * right - np.sin(turn) * deep + 40.3
    v = np.sin(turn) * right + np.cos(turn) * deep + 40.7
    fu, fv = u - np.floor(u), v - np.floor(v)
    chequer = (np.floor(u) + np.floor(v)) % 2
    blur = 0.03 + 0.35 * canvas.pixel * away * size  # joints stay about a pixel wide
    joint = step(0.0, 1.0, np.minimum(np.minimum(fu, 1 - fu), np.minimum(fv, 1 - fv)) / (2 * blur))
    vein = fractal(table, u * 3, v * 3, 2) - 0.5
    tile = 0.22 + 0.52 * chequer + 0.14 * (cell(table, u, v) - 0.5) + 0.12 * vein
    lamp = np.exp(-(((canvas.x - vanish) / 0.28) ** 2)) * np.exp(-(canvas.y - foot) * 2.2)
    ground = 0.10 * (1 - joint) + tile * joint + 0.35 * lamp
    skirting = step(-0.045, -0.035, -(foot - canvas.y))
    wall = 0.52 + 0.20 * np.exp(-(((canvas.x - vanish) / 0.35) ** 2)) - 0.35 * skirting
    return Painting(np.where(floor, ground, wall), np.where(floor, 0.65 * chequer, 1.0))


def city(dice: Dice, canvas: Canvas) -> Painting:
    """A skyline after sunset: three rows of towers, lit windows, a moon."""
    table = dice.table(PERIOD, PERIOD)
    moon_x, moon_y = dice.uniform(0.1, 0.9), dice.uniform(0.08, 0.2)
    disc = np.hypot(canvas.x - moon_x, canvas.y - moon_y)
    tone = 0.36 + 0.36 * canvas.y + 0.5 * step(-0.075, -0.06, -disc) + 0.10 * np.exp(-disc * 7)
    tint = np.clip(0.25 + 0.5 * canvas.y, 0, 1)
    for row in range(3):
        near = row / 2
        pitch = (0.040, 0.047, 0.0625)[row]
        u, v = canvas.x / pitch + dice.uniform(0, 8), canvas.y / (pitch * 1.15)
        wide = 4 - (row == 0)
        lot = np.floor(np.floor(u) / wide).astype(np.int64) & (PERIOD - 1)
        inside = np.floor(u) - wide * np.floor(np.floor(u) / wide)
        roof = 0.14 + 0.30 * near + 0.36 * table[row, lot]
        mast = (inside == wide // 2) & (table[row + 8, lot] > 0.5)
        here = canvas.y > roof - 0.05 * mast
        fu, fv = u - np.floor(u), v - np.floor(v)
        pane = (fu > 0.28) & (fu < 0.82) & (fv > 0.25) & (fv < 0.80) & (canvas.y > roof + 0.03)
        glow = cell(table, u + 7 * row, v)
        lit = pane & (glow > 0.48) & (inside > 0)
        wall = 0.36 - 0.13 * near + 0.10 * (table[row + 4, lot] - 0.5) - 0.08 * (inside == 0)
        tone = np.where(here, np.where(lit, 0.62 + 0.55 * (glow - 0.3), wall), tone)
        tint = np.where(here, np.where(lit, 1.0, 0.1), tint)
    return Painting(tone, tint)
