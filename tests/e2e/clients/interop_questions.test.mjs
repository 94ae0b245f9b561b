// Everything that a server can ask the official TypeScript clients, over each of their transports.

import { features_of_questions } from '../lib/features_of_questions.mjs';
import { direct_rows, test_features } from '../lib/interop.mjs';

test_features(direct_rows, features_of_questions);
