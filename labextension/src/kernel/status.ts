/** Statuses after which the kernel process has ended, and with it its widgets and their ids. */
export const DEAD_STATUSES: ReadonlySet<string> = new Set(['restarting', 'autorestarting', 'terminating', 'dead']);
