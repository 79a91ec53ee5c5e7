import { useState } from "preact/hooks";
import { time } from "./prefs";
import { duration } from "./ui";

// A Point is a value at a time in milliseconds.
export interface Point { at: number; value: number }

const shown = 5 * 60_000; // milliseconds that are kept
const least = 60_000; // that a chart is wide
const gap = 15_000; // without a value, for which there is no line
const width = 300, height = 40;

// add is points with one more, without those that are too old.
export const add = (points: Point[], p: Point): Point[] => [...points.filter((o) => o.at > p.at - shown), p];

// ceiling is a round number that is no less: of bytes a power of two.
const ceiling = (n: number, binary: boolean): number => {
  if (binary) return 2 ** Math.ceil(Math.log2(Math.max(n, 1024)));
  const unit = 10 ** Math.floor(Math.log10(Math.max(n, 1)));
  return [1, 2, 5, 10].map((m) => m * unit).find((m) => m >= n)!;
};

// Chart is a tile with a value, and what it was in the last minutes.
export function Chart({ name, points, format, binary = false, more, none = "not known" }: { name: string; points: Point[]; format(value: number): string; binary?: boolean; more?: string; none?: string | undefined }) {
  const [pointed, setPointed] = useState<number | null>(null); // milliseconds
  const last = points.at(-1);
  const at = points.find((p) => p.at === pointed);
  const values = points.map((p) => p.value);
  const most = Math.max(...values), top = ceiling(most * 1.05, binary);
  const end = last?.at ?? 0, begin = Math.min(points[0]?.at ?? 0, end - least);
  const x = (p: Point) => (((p.at - begin) / (end - begin)) * width).toFixed(1), y = (p: Point) => (height - 1 - (p.value / top) * (height - 2)).toFixed(1);
  let line = "", area = "", from: Point | undefined; // that the area above the line's piece begins with
  points.forEach((p, i) => {
    const before = points[i - 1], after = points[i + 1];
    if (!before || p.at - before.at > gap) { from = p; line += `M${x(p)} ${y(p)}`; area += `M${x(p)} ${height}`; }
    line += `L${x(p)} ${y(p)}`; area += `L${x(p)} ${y(p)}`;
    if (from && (!after || after.at - p.at > gap)) area += `L${x(p)} ${height}Z`;
  });
  const point = (e: PointerEvent) => {
    const box = (e.currentTarget as SVGElement).getBoundingClientRect(), wanted = begin + ((e.clientX - box.left) / box.width) * (end - begin);
    setPointed(points.reduce((a, b) => (Math.abs(b.at - wanted) < Math.abs(a.at - wanted) ? b : a)).at);
  };
  return (
    <div class="card tile chart">
      <dt class="note row spread"><span>{name}</span>{at && <span>{time(at.at)}</span>}</dt>
      <dd>
        {last ? format((at ?? last).value) : none} {more && <span class="note">{more}</span>}
        <div class="plot">
          {last && (
            <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" onPointerMove={point} onPointerLeave={() => setPointed(null)}
              aria-label={`${name} in the last ${duration(end - points[0]!.at)}: at least ${format(Math.min(...values))}, at most ${format(most)}`}>
              <path class="grid" d={`M0 1H${width}M0 ${height / 2}H${width}M0 ${height - 1}H${width}`} />
              <path class="area" d={area} />
              <path class="line" d={line} />
              {at && <path class="grid at" d={`M${x(at)} 0V${height}`} />}
            </svg>
          )}
          {last && <span class="top" aria-hidden="true">{format(top)}</span>}
        </div>
      </dd>
    </div>
  );
}
