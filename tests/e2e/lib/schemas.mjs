// Checks that the server's messages follow the schema of their revision (tests/schemas), with a
// validator that is not the server's own.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';

const kVersionKey = 'io.modelcontextprotocol/protocolVersion';
const kNewestLegacy = '2025-11-25';
const kAssumed = '2025-03-26'; // over HTTP, for requests that name no revision

const results = {
  initialize: 'InitializeResult',
  'server/discover': 'DiscoverResult',
  ping: 'EmptyResult',
  'tools/list': 'ListToolsResult',
  'tools/call': 'CallToolResult',
  'resources/list': 'ListResourcesResult',
  'resources/templates/list': 'ListResourceTemplatesResult',
  'resources/read': 'ReadResourceResult',
  'prompts/list': 'ListPromptsResult',
  'prompts/get': 'GetPromptResult',
  'completion/complete': 'CompleteResult',
  'logging/setLevel': 'EmptyResult',
};
const notifications = {
  'notifications/progress': 'ProgressNotification',
  'notifications/message': 'LoggingMessageNotification',
  'notifications/cancelled': 'CancelledNotification',
  'notifications/tools/list_changed': 'ToolListChangedNotification',
  'notifications/prompts/list_changed': 'PromptListChangedNotification',
  'notifications/resources/list_changed': 'ResourceListChangedNotification',
  'notifications/resources/updated': 'ResourceUpdatedNotification',
  'notifications/tasks/status': 'TaskStatusNotification',
};
const requests = {
  ping: 'PingRequest',
  'sampling/createMessage': 'CreateMessageRequest',
  'elicitation/create': 'ElicitRequest',
  'roots/list': 'ListRootsRequest',
};
const errors = {
  [-32020]: 'HeaderMismatchError',
  [-32021]: 'MissingRequiredClientCapabilityError',
  [-32022]: 'UnsupportedProtocolVersionError',
};

const validators = new Map();

// The definitions in a revision's schema: has(name), and get(name), which returns a validator.
function definitions_of(revision) {
  let entry = validators.get(revision);
  if (!entry) {
    const file = new URL(`../../schemas/${revision}/schema.json`, import.meta.url);
    const schema = JSON.parse(readFileSync(file, 'utf8'));
    const keyword = schema.$defs ? '$defs' : 'definitions';
    const options = { strict: false, validateFormats: false, allErrors: true };
    const ajv = schema.$defs ? new Ajv2020(options) : new Ajv(options);
    ajv.addSchema(schema, 'wire');
    entry = { has: (name) => name in schema[keyword], get: (name) => ajv.getSchema(`wire#/${keyword}/${name}`) };
    validators.set(revision, entry);
  }
  return entry;
}

function expect(definitions, value, name, message, revision) {
  if (!name || !definitions.has(name)) return;
  const validate = definitions.get(name);
  const problems = validate(value) ? [] : validate.errors;
  const told = problems.map(({ instancePath, message: why }) => `${instancePath} ${why}`).join('; ');
  assert.equal(told, '', `${name} of ${revision}: ${told} in ${JSON.stringify(message)}`);
}

// Checks a message that the server has sent. If it is a response, `method` is the method of the
// request. For methods that are not part of the protocol, only the JSON-RPC envelope is checked.
export function check_message(message, method, revision) {
  const definitions = definitions_of(revision);
  // The schemas before 2025-11-25 have no error without an id.
  if (message.error && message.id === undefined && !definitions.has('JSONRPCErrorResponse')) return;
  const check = (value, name) => expect(definitions, value, name, message, revision);
  check(message, 'JSONRPCMessage');
  if (message.method) check(message, notifications[message.method] ?? requests[message.method]);
  else if (message.error) check(message, errors[message.error.code]);
  else if (message.result?.resultType === 'input_required') {
    check(message.result, 'InputRequiredResult');
  } else if (message.result?.resultType === 'task') {
    check(message.result, 'Result'); // SEP-2663, which is not in the schemas
  } else if (message.result?.task) check(message.result, 'CreateTaskResult');
  else check(message.result, results[method]);
}

// The revision of the answer to a request. `headers` are those of an HTTP request. `agreed` is the
// revision of the session or connection.
export function revision_of({ method, params }, { headers, agreed } = {}) {
  const named = params?._meta?.[kVersionKey] ?? headers?.['mcp-protocol-version'] ?? agreed;
  if (method === 'initialize') return known_legacy(params?.protocolVersion);
  if (named === '2026-07-28') return named;
  return named ? known_legacy(named) : headers ? kAssumed : kNewestLegacy;
}

function known_legacy(name) {
  return ['2025-06-18', '2025-03-26', '2024-11-05'].includes(name) ? name : kNewestLegacy;
}

// Checks everything that a client's `transport` receives before the client gets it. `seen` holds
// the messages, `problems` what was wrong with them.
export function check_transport(transport) {
  const seen = [];
  const problems = [];
  const asked = new Map();
  let agreed;
  const send = transport.send.bind(transport);
  transport.send = (message, ...rest) => {
    if (message.method && message.id !== undefined) {
      asked.set(message.id, message);
      agreed = message.params?._meta?.[kVersionKey] ?? agreed;
    }
    return send(message, ...rest);
  };
  const look = (message) => {
    seen.push(message);
    const request = message.method ? {} : (asked.get(message.id) ?? {});
    if (request.method === 'initialize') agreed = message.result?.protocolVersion;
    try {
      check_message(message, request.method, revision_of(request, { agreed }));
    } catch (problem) {
      problems.push(problem);
    }
  };
  let deliver;
  Object.defineProperty(transport, 'onmessage', {
    get: () => deliver,
    set: (handler) => {
      deliver =
        handler &&
        ((message, ...rest) => {
          look(message);
          return handler(message, ...rest);
        });
    },
  });
  return { seen, problems };
}
