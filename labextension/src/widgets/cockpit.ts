import '../../style/session.css';
import '../../style/timeline.css';
import '../../style/cockpit.css';
import { Cockpit } from '../cockpit/cockpit';

const host = document.getElementById('cockpit');
if (host) {
  new Cockpit(host);
}
