import { LabIcon } from '@jupyterlab/ui-components';

/** Icon of the panel's tab: a dial. */
export const gaugeIcon = new LabIcon({
  name: 'dpnb:dial',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="16">
    <g class="jp-icon3" fill="none" stroke="#616161" stroke-width="2.4" stroke-linecap="round">
      <path fill="none" d="M4 17 A8.5 8.5 0 1 1 20 17"/><path fill="none" d="M12 14 L16 8.5"/>
    </g></svg>`
});
