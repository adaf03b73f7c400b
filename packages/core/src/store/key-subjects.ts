/** What a key is about, for who walks over all keys: the other direction of keys.ts and queue/queue-keys.ts. */
import type { Partition } from '../queue/partitions.js';
import { jobOfKey } from '../queue/queue-keys.js';

export type KeySubject =
  | { kind: 'record'; key: string; requestId: string }
  | { kind: 'payload'; key: string; requestId: string; nonce: string }
  | { kind: 'outcome'; key: string; requestId: string; nonce: string }
  | { kind: 'job'; key: string; requestId: string; partition: Partition };

const LETTERS: Record<string, 'record' | 'payload' | 'outcome'> = { q: 'record', p: 'payload', o: 'outcome' };

/** null: a key that is about no single request, or none of ours. */
export function subjectOf(key: string, prefix: string): KeySubject | null {
  const job = jobOfKey(key, prefix);
  if (job) return { kind: 'job', key, ...job };
  if (!key.startsWith(`${prefix}:{r`)) return null;
  const [tag = '', letter = '', requestId = '', nonce = ''] = key.slice(prefix.length + 1).split(':');
  const kind = LETTERS[letter];
  if (!kind || !/^\{r\d+\}$/.test(tag) || !requestId) return null;
  return kind === 'record' ? { kind, key, requestId } : { kind, key, requestId, nonce };
}
