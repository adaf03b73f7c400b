/**
 * The smallest model that makes a provider do something: y = x + x, FP32 [N, D]. Kept as bytes so that providers can
 * be tried on a machine that has no models yet.
 */
export const TINY_MODEL = {
  input: 'x',
  output: 'y',
  bytes: new Uint8Array(
    Buffer.from(
      'CAgSEnJlbXVkYS10ZXN0LW1vZGVsczpIChUKAXgKAXgSAXkaBUFkZF95IgNBZGQSAWdaFQoBeBIQCg4IARIKCgMSAU4KAxIBRGIVCgF5EhAKDggBEgoKAxIBTgoDEgFEQgQKABAR',
      'base64',
    ),
  ),
};
