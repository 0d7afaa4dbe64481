import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import { Signal } from '@lumino/signaling';
import { expect, it, vi } from 'vitest';

import badges from '../../schema/badges.json';
import status from '../../schema/status.json';
import { DEFAULT_HEADLINE } from '../dom/format';
import { Setting } from '../setting';
import { settle } from './fakeKernel';

class FakeSettings {
  readonly changed = new Signal<this, void>(this);
  readonly set = vi.fn((key: string, value: unknown) => {
    this.values[key] = value;
    this.changed.emit();
    return Promise.resolve();
  });

  constructor(private readonly values: Record<string, unknown>) {}

  get(key: string): { composite: unknown } {
    return { composite: this.values[key] };
  }

  get registry(): ISettingRegistry {
    return { load: () => Promise.resolve(this) } as unknown as ISettingRegistry;
  }
}

it('has its default until it is loaded, then what the user chose', async () => {
  const setting = new Setting<string>(
    new FakeSettings({ headline: 'odometer' }).registry,
    'dpnb:status',
    'headline',
    'remaining'
  );
  const changed = vi.fn();
  setting.changed.connect(changed);
  expect(setting.value).toBe('remaining');
  await settle();
  expect(setting.value).toBe('odometer');
  expect(changed).toHaveBeenCalledOnce();
});

it('follows the settings editor, and does not take nonsense from it', async () => {
  const settings = new FakeSettings({ showBadges: true });
  const setting = new Setting<boolean>(settings.registry, 'dpnb:badges', 'showBadges', true);
  await settle();
  await settings.set('showBadges', false);
  expect(setting.value).toBe(false);
  await settings.set('showBadges', 'yes');
  expect(setting.value).toBe(false);
});

it('is kept for later pages', async () => {
  const settings = new FakeSettings({ showBadges: true });
  const setting = new Setting<boolean>(settings.registry, 'dpnb:badges', 'showBadges', true);
  await settle();
  await setting.set(false);
  expect(settings.set).toHaveBeenCalledWith('showBadges', false);
});

it('holds for this page where the server that keeps settings is gone', async () => {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  const settings = new FakeSettings({ showBadges: true });
  settings.set.mockRejectedValue(new TypeError('Failed to fetch'));
  const setting = new Setting<boolean>(settings.registry, 'dpnb:badges', 'showBadges', true);
  await settle();
  await setting.set(false);
  expect(setting.value).toBe(false);
  expect(warn).toHaveBeenCalledOnce();
});

it('works on a page without settings, or without ours', async () => {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  const broken = { load: () => Promise.reject(new Error('no such plugin')) } as unknown as ISettingRegistry;
  for (const registry of [null, broken]) {
    const setting = new Setting<boolean>(registry, 'dpnb:badges', 'showBadges', true);
    await settle();
    await setting.set(false);
    expect(setting.value).toBe(false);
  }
  expect(warn).toHaveBeenCalledOnce();
});

it('has the same default in the schema as in the code', () => {
  expect(status.properties.headline.default).toBe(DEFAULT_HEADLINE);
  expect(badges.properties.showBadges.default).toBe(true);
});
