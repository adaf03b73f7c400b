/**
 * Changes values in the text of a model.yaml and leaves everything else of it as it is: comments, order, spacing. The
 * document is only asked where a value stands; written out again as a whole, it would be laid out anew.
 */
import { isMap, isScalar, parseDocument } from 'yaml';

/** @throws Error when the text is no YAML mapping, or a value to be changed is no plain value */
export function editConfig(text: string, changes: Readonly<Record<string, number | string>>): string {
  return Object.entries(changes).reduce((edited, [key, value]) => editValue(edited, key, value), text);
}

function editValue(text: string, key: string, value: number | string): string {
  const document = parseDocument(text);
  if (document.errors[0]) throw document.errors[0];
  if (!isMap(document.contents)) throw new Error('model.yaml is not a mapping of keys to values');
  const node = document.get(key, true);
  if (node === undefined) return `${text.replace(/\n*$/, '\n')}${key}: ${value}\n`;
  if (!isScalar(node) || !node.range) throw new Error(`${key} in model.yaml is not a plain value`);
  const [from, to] = node.range;
  return text.slice(0, from) + String(value) + text.slice(to);
}
