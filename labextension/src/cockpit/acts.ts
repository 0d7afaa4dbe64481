import type { IAmount } from '../protocol/cockpit';

/** What a curator does to a table: the values that the service decodes. */
export type Act =
  | { act: 'freeze'; why: string }
  | { act: 'unfreeze' }
  | { act: 'approve'; request: number; digest: string; amount: IAmount | null; until: string | null; why: string }
  | { act: 'decline'; request: number; digest: string; why: string }
  | { act: 'move_cap'; level: string; name: string; cap: IAmount | null }
  | { act: 'end'; number: number }
  | { act: 'resume'; row: number }
  | { act: 'revoke' | 'restore'; level: string; name: string };
