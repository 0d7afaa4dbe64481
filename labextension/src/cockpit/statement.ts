import { ask, type IField } from './dialog';
import type { Service } from './service';
import { download, fileName } from '../log/csv';
import type { ITableState } from '../protocol/curation';
import { trans } from '../translation';

const TYPES: Record<string, string> = { html: 'text/html', json: 'application/json' };

/** Ask which statement, and save it: of the whole table, or of the part that is reserved for one analyst. */
export async function saveStatement(service: Service, { name, parts }: ITableState): Promise<void> {
  const own = parts.filter(({ level, ceiling }) => level === 'analyst' && ceiling !== null);
  const about = own.map(({ name: analyst }): [string, string] => [analyst, trans.__('the part of %1', analyst)]);
  const whose: IField = {
    name: 'analyst',
    label: trans.__('About'),
    choices: [['', trans.__('the whole table')], ...about]
  };
  const format: IField = {
    name: 'format',
    label: trans.__('Format'),
    choices: [
      ['html', trans.__('a page to read and print')],
      ['json', trans.__('JSON')]
    ]
  };
  await ask({
    title: trans.__('Disclosure statement of %1', name),
    what: [
      trans.__('Who is protected, what is guaranteed, and every request with its loss; no answers.'),
      ...(own.length > 0
        ? [trans.__('That of one part says nothing of the others: it is what its analyst can hand over.')]
        : [])
    ],
    fields: [...(own.length > 0 ? [whose] : []), format],
    confirm: trans.__('Save'),
    act: async ({ analyst = '', format: form = 'html' }) => {
      const text = await service.statement(name, form, analyst);
      const whose = analyst === '' ? name : `${name}-${analyst}`;
      download(`${fileName(whose)}-statement.${form}`, text, TYPES[form] ?? '');
    }
  });
}
