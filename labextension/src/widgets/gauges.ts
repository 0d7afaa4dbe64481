import '../../style/session.css';
import { renderGauges } from '../gaugesWidget';

export default { render: renderGauges };
