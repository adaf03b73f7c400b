/** Numbers as people read them, with the same digits in every table. */

/** 3.1, 41.7, 128, 2,041: a tenth matters only while it is small. */
export function milliseconds(ms: number): string {
  return ms < 100 ? ms.toFixed(1) : Math.round(ms).toLocaleString('en-US');
}

export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

export function megabytes(bytes: number): string {
  return `${Math.round(bytes / 2 ** 20).toLocaleString('en-US')} MB`;
}

export function plural(count: number, noun: string): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`;
}

/** Of a share from 0 to 1. */
export function percent(share: number): string {
  return `${Number((share * 100).toPrecision(3))} %`;
}

/** 0.4 s, 38 s, 3 min 20 s, 5 h 07 min: as exact as one cares to know. */
export function duration(s: number): string {
  if (s < 9.95) return `${s.toFixed(1)} s`;
  const whole = Math.round(s);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min ${whole % 60} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
}
