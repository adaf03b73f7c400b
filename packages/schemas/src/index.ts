/** Every shape that crosses a boundary. JSON Schemas in ../json are generated from these (pnpm schemas). */
export * from './base64.js';
export * from './bytes-elements.js';
export * from './datatypes.js';
export * from './errors.js';
export * from './fleet.js';
export * from './frame.js';
export * from './half-float.js';
export * from './inference-request.js';
export * from './inference-result.js';
export * from './json-text.js';
export * from './model.js';
export * from './model-source.js';
export * from './tensor.js';
export * from './tensor-codec.js';
export * from './violation.js';
