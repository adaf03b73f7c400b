/**
 * Turns ONNX Runtime's telemetry off, for the processes that load it. From version 1.30 on its Linux build reports
 * sessions and models to its maker over the network, from a database below the home folder (or the working folder,
 * where there is none). Whoever runs a fleet has not asked for that. Set ORT_DISABLE_TELEMETRY yourself to decide.
 *
 * Imported first by each process entry: the native library looks once, when it is loaded.
 */
process.env.ORT_DISABLE_TELEMETRY ??= '1';
