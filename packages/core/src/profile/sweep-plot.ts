/** A sweep as an SVG: rows a second over the batch size, a line for each pair of instances and threads. Pure. */
import type { SweepPoint } from './recommendation.js';

const SIZE = { width: 720, height: 420, left: 70, right: 190, top: 40, bottom: 50 };
/** Told apart also by who sees no red and green. */
const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#5b5b5b', '#f0a030'];

export interface PlotOptions {
  title: string;
  recommended: SweepPoint;
}

export function sweepPlot(points: readonly SweepPoint[], { title, recommended }: PlotOptions): string {
  const scale = scaleOf(points);
  const pairs = groupsOf(points);
  const lines = [...pairs].flatMap(([label, group], index) => seriesOf(label, group, index, scale));
  const { width, height } = SIZE;
  const font = 'font-family="sans-serif" font-size="12"';
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" ${font}>`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    text(SIZE.left, 22, title, 'font-size="15"'),
    ...axes(points, scale),
    ...lines,
    ...mark(recommended, scale),
    '</svg>',
    '',
  ].join('\n');
}

interface Scale {
  x(batch: number): number;
  y(rowsPerS: number): number;
  top: number;
}

function scaleOf(points: readonly SweepPoint[]): Scale {
  const top = niceCeiling(Math.max(...points.map(({ rowsPerS }) => rowsPerS)));
  const exponents = points.map(({ batch }) => Math.log2(batch));
  const [least, most] = [Math.min(...exponents), Math.max(...exponents)];
  const across = SIZE.width - SIZE.left - SIZE.right;
  const up = SIZE.height - SIZE.top - SIZE.bottom;
  return {
    top,
    x: (batch) =>
      round(
        SIZE.left + (most === least ? across / 2 : ((Math.log2(batch) - least) / (most - least)) * across),
      ),
    y: (rowsPerS) => round(SIZE.height - SIZE.bottom - (rowsPerS / top) * up),
  };
}

/** The next of 1, 2, 2.5, 5 times a power of ten. */
function niceCeiling(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 2.5, 5, 10].find((step) => step * power >= value) ?? 10) * power;
}

function groupsOf(points: readonly SweepPoint[]): Map<string, SweepPoint[]> {
  const groups = new Map<string, SweepPoint[]>();
  for (const point of points) {
    const label = `${point.instances} × ${point.threads} ${point.threads === 1 ? 'thread' : 'threads'}`;
    groups.set(label, [...(groups.get(label) ?? []), point]);
  }
  return groups;
}

function axes(points: readonly SweepPoint[], { x, y, top }: Scale): string[] {
  const bottom = SIZE.height - SIZE.bottom;
  const end = SIZE.width - SIZE.right;
  const batches = [...new Set(points.map(({ batch }) => batch))].filter((batch) =>
    Number.isInteger(Math.log2(batch)),
  );
  const levels = [0, 0.25, 0.5, 0.75, 1].map((share) => share * top);
  return [
    ...levels.flatMap((level) => [
      `<line x1="${SIZE.left}" y1="${y(level)}" x2="${end}" y2="${y(level)}" stroke="#dddddd"/>`,
      text(SIZE.left - 8, y(level) + 4, String(round(level)), 'text-anchor="end"'),
    ]),
    ...batches.map((batch) => text(x(batch), bottom + 18, String(batch), 'text-anchor="middle"')),
    text((SIZE.left + end) / 2, SIZE.height - 10, 'rows of a run', 'text-anchor="middle"'),
    text(
      16,
      (SIZE.top + bottom) / 2,
      'rows a second',
      `text-anchor="middle" transform="rotate(-90 16 ${(SIZE.top + bottom) / 2})"`,
    ),
  ];
}

function seriesOf(label: string, points: readonly SweepPoint[], index: number, { x, y }: Scale): string[] {
  const colour = COLOURS[index % COLOURS.length] as string;
  const sorted = [...points].sort((a, b) => a.batch - b.batch);
  const path = sorted.map(({ batch, rowsPerS }) => `${x(batch)},${y(rowsPerS)}`).join(' ');
  const at = SIZE.top + 10 + index * 20;
  const legend = SIZE.width - SIZE.right + 20;
  return [
    `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/>`,
    ...sorted.map(
      ({ batch, rowsPerS }) => `<circle cx="${x(batch)}" cy="${y(rowsPerS)}" r="3" fill="${colour}"/>`,
    ),
    `<line x1="${legend}" y1="${at}" x2="${legend + 18}" y2="${at}" stroke="${colour}" stroke-width="2"/>`,
    text(legend + 24, at + 4, label),
  ];
}

function mark({ batch, rowsPerS }: SweepPoint, { x, y }: Scale): string[] {
  return [
    `<circle cx="${x(batch)}" cy="${y(rowsPerS)}" r="8" fill="none" stroke="#000000" stroke-width="1.5"/>`,
    text(x(batch) + 11, y(rowsPerS) - 8, 'recommended'),
  ];
}

function text(x: number, y: number, content: string, attributes = ''): string {
  const escaped = content.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
  return `<text x="${round(x)}" y="${round(y)}"${attributes && ` ${attributes}`}>${escaped}</text>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
