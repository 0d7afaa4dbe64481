import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import { type ISignal, Signal } from '@lumino/signaling';

/** One of the user's settings; its fall-back until it is loaded, and on pages without settings. */
export class Setting<T extends string | boolean> {
  private readonly _changed = new Signal<this, T>(this);
  private _settings: ISettingRegistry.ISettings | null = null;
  private _value: T;

  constructor(
    registry: ISettingRegistry | null,
    plugin: string,
    private readonly _key: string,
    fallback: T
  ) {
    this._value = fallback;
    if (registry) {
      void this._load(registry, plugin);
    }
  }

  get value(): T {
    return this._value;
  }

  get changed(): ISignal<this, T> {
    return this._changed;
  }

  /** Change it, for later pages too where the page has settings. */
  async set(value: T): Promise<void> {
    this._take(value);
    try {
      await this._settings?.set(this._key, value);
    } catch (reason) {
      console.warn(`dpnb could not save its setting ${this._key}: ${String(reason)}`); // the server is gone, say
    }
  }

  private async _load(registry: ISettingRegistry, plugin: string): Promise<void> {
    try {
      this._settings = await registry.load(plugin);
      this._settings.changed.connect(this._read, this);
      this._read();
    } catch (reason) {
      console.warn(`dpnb uses the fall-back of its setting ${this._key}: ${String(reason)}`);
    }
  }

  private _read(): void {
    const value = this._settings?.get(this._key).composite;
    if (typeof value === typeof this._value) {
      this._take(value as T);
    }
  }

  private _take(value: T): void {
    if (value !== this._value) {
      this._value = value;
      this._changed.emit(value);
    }
  }
}
