/** Who is at this terminal, for the history of models and the audit log. */
import { userInfo } from 'node:os';

export function actor(): string {
  try {
    return userInfo().username.replace(/[^\x21-\x7e]/g, '?') || 'cli';
  } catch {
    // A process whose user has no name, as in many containers.
    return 'cli';
  }
}
