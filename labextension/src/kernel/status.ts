/** Statuses after which the process that widgets and pickers belonged to is gone, and their ids with it. */
export const DEAD_STATUSES: ReadonlySet<string> = new Set(['restarting', 'autorestarting', 'terminating', 'dead']);
