import { isSnapshot } from '../protocol/read';
import type { ISnapshot } from '../protocol/snapshot';

/** The last snapshot of each kernel, for a reloaded page: a busy kernel cannot send it again. */
export interface ISnapshotCache {
  read(kernelId: string): ISnapshot | null;
  write(kernelId: string, snapshot: ISnapshot): void;
  clear(kernelId: string): void;
}

/** A cache in the storage of the browser tab. */
export class TabCache implements ISnapshotCache {
  constructor(private readonly storage: Storage = window.sessionStorage) {}

  read(kernelId: string): ISnapshot | null {
    try {
      const value: unknown = JSON.parse(this.storage.getItem(key(kernelId)) ?? 'null');
      return isSnapshot(value) ? value : null;
    } catch {
      return null; // not JSON, or the browser forbids storage
    }
  }

  write(kernelId: string, snapshot: ISnapshot): void {
    try {
      this.storage.setItem(key(kernelId), JSON.stringify(snapshot));
    } catch {
      this.clear(kernelId); // if the storage is full, an older state must not remain
    }
  }

  clear(kernelId: string): void {
    try {
      this.storage.removeItem(key(kernelId));
    } catch {
      // The browser forbids storage: there is nothing to clear.
    }
  }
}

const key = (kernelId: string): string => `dpnb:snapshot:${kernelId}`;
