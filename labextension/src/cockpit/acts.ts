import type { Components } from './amounts';

/** What a curator does to a table: the values that the service decodes. */
export type Act =
  | { act: 'freeze'; why: string }
  | { act: 'unfreeze' }
  | { act: 'approve'; request: number; digest: string; amount: Components | null; until: string | null; why: string }
  | { act: 'decline'; request: number; digest: string; why: string }
  | { act: 'move_cap'; level: string; name: string; cap: Components | { share: string } | null }
  | { act: 'end'; number: number }
  | { act: 'resume'; row: number }
  | { act: 'revoke' | 'restore'; level: string; name: string };

/** What a curator does about an analyst of a table; `has_token` is left at its default, true. */
export type PersonAct =
  | {
      act: 'add_analyst';
      name: string;
      project: string | null;
      amount: { share: string } | null;
      expires: string | null;
    }
  | { act: 'remove_analyst'; name: string }
  | { act: 'hand_over'; name: string; to: string; expires: string | null };

/** What is done about the token of a person. */
export type TokenAct =
  | { act: 'replace' | 'revoke'; name: string }
  | { act: 'extend'; name: string; expires: string | null }
  | { act: 'new'; name: string; role: string; expires: string | null };
