import type { Components } from './amounts';

/** What a curator does to a table: the values that the service decodes. */
export type Act =
  | { act: 'freeze'; why: string }
  | { act: 'unfreeze' }
  | { act: 'approve'; request: number; digest: string; amount: Components | null; until: string | null; why: string }
  | { act: 'decline'; request: number; digest: string; why: string }
  | { act: 'move_cap'; level: string; name: string; cap: Components | null }
  | { act: 'end'; number: number }
  | { act: 'resume'; row: number }
  | { act: 'revoke' | 'restore'; level: string; name: string };
