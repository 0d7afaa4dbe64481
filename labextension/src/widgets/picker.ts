import '../../style/session.css';
import '../../style/picker.css';
import { renderPicker } from '../pickerWidget';

export default { render: renderPicker };
