/** What a version may take in memory before it was ever loaded: the size of its model file and of the data beside it. */
import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/**
 * An estimate for one session: weights are most of it. ONNX files keep large weights in files whose name begins with
 * their own (model.onnx.data, model.onnx_data).
 * @returns bytes; 0 where the file is not there
 */
export async function estimateBytes(modelFile: string): Promise<number> {
  const folder = dirname(modelFile);
  const names = (await readdir(folder).catch(() => [])).filter((name) =>
    name.startsWith(basename(modelFile)),
  );
  const sizes = await Promise.all(
    names.map((name) =>
      stat(join(folder, name)).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}
