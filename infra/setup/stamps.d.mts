export interface Stamps {
  manifests?: string;
  sources?: string;
}
export function workspaceFolders(root: string): string[];
export function manifestStamp(root: string): string;
export function sourceStamp(root: string): string;
export function isInstalled(root: string): boolean;
export function isBuilt(root: string): boolean;
export function readStamps(path: string): Stamps;
export function writeStamps(path: string, stamps: Stamps): void;
