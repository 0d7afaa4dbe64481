import '../../style/session.css';
import '../../style/picker.css';
import { renderPicker } from '../picker/pickerWidget';

export default { render: renderPicker };
