import { plugins } from './plugins';

export default plugins;
