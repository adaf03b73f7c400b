export interface ProcessIdentity {
  pid: number;
  started: string | undefined;
}
export function processStarted(pid: number): string | undefined;
export function thisProcess(): ProcessIdentity;
export function isRunning(identity: ProcessIdentity): boolean;
export function withLock<T>(
  path: string,
  work: () => Promise<T>,
  options?: { onWait?: (holderPid: number | undefined) => void; timeoutMs?: number },
): Promise<T>;
