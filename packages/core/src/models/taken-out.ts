/** A model that was taken out with the admin API: what its requests are told, new ones and those that wait. */
import type { ItemError } from '@remuda/schemas';
import { itemError } from '../errors.js';

export function takenOutMessage(model: string): string {
  return `${model} was taken out; POST /v1/admin/models registers it again`;
}

export function takenOutError(model: string): ItemError {
  return itemError('model_not_found', takenOutMessage(model));
}
