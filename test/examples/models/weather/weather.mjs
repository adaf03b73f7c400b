export const definition = async ({ kind, z }) => ({
  ...(await kind('onnx')),
  kwargs: z.strictObject({ warm_from: z.number().describe('In degrees Fahrenheit.') }),
  hooks: async ({ config }) => ({
    async postprocess(outputs) {
      const degrees = new Float32Array(Uint8Array.from(outputs[0].bytes).buffer);
      const feels = Array.from(degrees, (f) => (f < config.model_kwargs.warm_from ? 'cold' : 'warm'));
      return { outputs, extra: { feels } };
    },
  }),
});
