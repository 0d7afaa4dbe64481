import { isSnapshot } from '../protocol/read';
import type { ISnapshot } from '../protocol/snapshot';

/** Remembers, per kernel, the last snapshot seen: a busy kernel cannot repeat it after the page was reloaded. */
export interface ISnapshotCache {
  read(kernelId: string): ISnapshot | null;
  write(kernelId: string, snapshot: ISnapshot): void;
  clear(kernelId: string): void;
}

/** A cache that lives as long as the browser tab. */
export class TabCache implements ISnapshotCache {
  constructor(private readonly storage: Storage = window.sessionStorage) {}

  read(kernelId: string): ISnapshot | null {
    try {
      const value: unknown = JSON.parse(this.storage.getItem(key(kernelId)) ?? 'null');
      return isSnapshot(value) ? value : null;
    } catch {
      return null; // not JSON, or the browser forbids storage: then nothing was remembered
    }
  }

  write(kernelId: string, snapshot: ISnapshot): void {
    try {
      this.storage.setItem(key(kernelId), JSON.stringify(snapshot));
    } catch {
      this.clear(kernelId); // a full storage must not leave an older state behind
    }
  }

  clear(kernelId: string): void {
    try {
      this.storage.removeItem(key(kernelId));
    } catch {
      // the browser forbids storage: there is nothing to clear
    }
  }
}

const key = (kernelId: string): string => `dpnb:snapshot:${kernelId}`;
