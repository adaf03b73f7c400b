/** Which inputs lie elsewhere: asked without the libraries that fetch them (fetch-input.ts). */

/** Whether it has to be fetched before it can be opened. */
export function isRemote(uri: string): boolean {
  return /^(https?|s3):\/\//i.test(uri);
}
