// A model that calls tools, for agents.

import { delta, kStop, start_api, words } from './remote_api.mjs';

// Makes these calls, each [tool, arguments], at once, and then says the results in parentheses.
export function calling_model(t, ...calls) {
  const made = calls.map(([name, given], index) => ({
    index,
    id: `call_${index}`,
    type: 'function',
    function: { name, arguments: JSON.stringify(given) },
  }));
  return start_api(t, ({ messages }, reply) => {
    const results = messages.filter(({ role }) => role === 'tool');
    if (results.length === 0) {
      return reply.done(delta({ tool_calls: made }), delta({}, 'tool_calls'));
    }
    return reply.done(...words(...results.map(({ content }) => `(${content}) `)), ...kStop);
  });
}
