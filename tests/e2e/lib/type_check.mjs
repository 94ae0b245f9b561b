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
// it does not name are refused too. Returns what is wrong with each value: a text, or '' if nothing.
export function check_types(declarations, values) {
  // The name decides where imports are looked for; there is no such file.
  const name = path.join(root, 'tests/e2e/values.mts');
  const head = `${declarations}\n`;
  const lines = values.map((value) => `(${JSON.stringify(value)}) satisfies Wanted;\n`);
  const text = head + lines.join('');
  const host = ts.createCompilerHost(kOptions);
  const from_disk = host.getSourceFile;
  host.getSourceFile = (file, ...more) =>
    file === name
      ? ts.createSourceFile(name, text, ts.ScriptTarget.ES2022)
      : from_disk(file, ...more);
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
