// How many milliseconds a test waits for what must happen. Sanitizer builds on a busy machine need
// more.
export const patience = Number(process.env.SLUICE_PATIENCE ?? 30_000);
