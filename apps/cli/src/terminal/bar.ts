/** A bar of eighths: as wide as it is told, as full as the share. */
const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/** @param share from 0 to 1 @param width columns */
export function bar(share: number, width: number): string {
  const eighths = Math.round(Math.min(1, Math.max(0, share)) * width * 8);
  const full = '█'.repeat(Math.floor(eighths / 8)) + EIGHTHS[eighths % 8];
  return full.padEnd(width, '░');
}
