/** BullMQ ships its scripts beside its classes, without types for the build that Node loads. */
declare module 'bullmq/dist/cjs/scripts/addPrioritizedJob-9.js' {
  export const addPrioritizedJob: { name: string; keys: number; content: string };
}
