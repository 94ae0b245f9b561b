// What TypeScript's compiler says of values as the types of a package have them.

import path from 'node:path';
import ts from 'typescript';
import { root } from './server.mjs';

const kOptions = {
  strict: true,
  noEmit: true,
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  types: [],
  // The packages' own files are not examined; what they declare is.
  skipLibCheck: true,
};

// Checks that each value satisfies `Wanted`, which the lines of `declarations` define. Members that
// it does not name are refused too, unless `is_open`. `files` are more files, texts by their paths.
// Returns what is wrong with each value: a text, or '' if nothing.
export function check_types(declarations, values, { is_open = false, files = {} } = {}) {
  // The name decides where imports are looked for; there is no such file.
  const name = path.join(root, 'tests/e2e/values.mts');
  const head = `${declarations}\ndeclare function fits<T extends Wanted>(value: T): void;\n`;
  const line_of = (value) =>
    is_open ? `fits(${JSON.stringify(value)});\n` : `(${JSON.stringify(value)}) satisfies Wanted;\n`;
  const texts = { ...files, [name]: head + values.map(line_of).join('') };
  const host = ts.createCompilerHost(kOptions);
  const from_disk = { ...host };
  host.fileExists = (file) => file in texts || from_disk.fileExists(file);
  host.getSourceFile = (file, ...more) =>
    file in texts
      ? ts.createSourceFile(file, texts[file], ts.ScriptTarget.ES2022)
      : from_disk.getSourceFile(file, ...more);
  const program = ts.createProgram([name], kOptions, host);
  const wrong = values.map(() => '');
  const first = head.split('\n').length - 1;
  for (const { file, start, messageText } of ts.getPreEmitDiagnostics(program)) {
    const said = ts.flattenDiagnosticMessageText(messageText, '\n');
    const line = file?.fileName === name ? file.getLineAndCharacterOfPosition(start).line : -1;
    if (line < first) throw new Error(`the declarations are wrong: ${said}`);
    wrong[line - first] += `${said}\n`;
  }
  return wrong;
}
