import '../../style/session.css';
import '../../style/timeline.css';
import { renderGauges } from '../live/gaugesWidget';

export default { render: renderGauges };
