// Everything that the official TypeScript clients can do, over each of their transports, against
// sluice-everything.

import { features } from '../lib/features.mjs';
import { direct_rows, test_features } from '../lib/interop.mjs';

test_features(direct_rows, features);
