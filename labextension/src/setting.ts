import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import { type ISignal, Signal } from '@lumino/signaling';

/** One of the user's settings; the default until it is loaded, and on pages without settings. */
export class Setting<T extends string | boolean> {
  private readonly _changed = new Signal<this, T>(this);
  private _settings: ISettingRegistry.ISettings | null = null;
  private _value: T;

  constructor(
    registry: ISettingRegistry | null,
    plugin: string,
    private readonly _key: string,
    defaultValue: T
  ) {
    this._value = defaultValue;
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

  /** Change the value, and save it if the page has settings. */
  async set(value: T): Promise<void> {
    this._update(value);
    try {
      await this._settings?.set(this._key, value);
    } catch (reason) {
      console.warn(`dpnb could not save its setting ${this._key}: ${String(reason)}`); // for example, the server has ended
    }
  }

  private async _load(registry: ISettingRegistry, plugin: string): Promise<void> {
    try {
      this._settings = await registry.load(plugin);
      this._settings.changed.connect(this._read, this);
      this._read();
    } catch (reason) {
      console.warn(`dpnb uses the default of its setting ${this._key}: ${String(reason)}`);
    }
  }

  private _read(): void {
    const value = this._settings?.get(this._key).composite;
    if (typeof value === typeof this._value) {
      this._update(value as T);
    }
  }

  private _update(value: T): void {
    if (value !== this._value) {
      this._value = value;
      this._changed.emit(value);
    }
  }
}
