#include <memory>
#include <string>
#include <unistd.h>

#include "cli/content/saved_files.hpp"
#include "cli/import/legacy_settings.hpp"
#include "cli/options/command.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/config_file.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/terminal/terminal.hpp"

namespace sluice {
namespace {

struct ImportArguments {
  std::string file;
  std::string output;
};

constexpr const char* kImportExamples =
    "Settings without a meaning here are named on standard error, a line each.\n"
    "\n"
    "Examples:\n"
    "  sluice import-config settings.json\n"
    "  sluice import-config settings.json -o sluice.toml && sluice serve\n";

Result<void> import_config(const ImportArguments& arguments) {
  if (arguments.file.empty()) return fail(kExitUsage, "say which file: settings.json");
  const Result<std::string> text = read_small_file(arguments.file, kMaxLegacySettings);
  if (!text) return std::unexpected(text.error());
  const Result<ImportedSettings> imported = import_legacy_settings(*text, arguments.file);
  if (!imported) return std::unexpected(imported.error());
  const std::string out = print_settings(imported->loaded);
  if (arguments.output.empty()) {
    if (Result<void> written = write_all(STDOUT_FILENO, out); !written) return written;
  } else {
    const Result<bool> saved = save_if_new(arguments.output, out);
    if (!saved) return std::unexpected(saved.error());
    if (!*saved) {
      return fail(kExitFailure, arguments.output + " exists; nothing is overwritten");
    }
  }
  for (const std::string& note : imported->notes) complain(note);
  return {};
}

int run_import_config(const ImportArguments& arguments) {
  const Result<void> done = import_config(arguments);
  if (done) return kExitOk;
  if (!done.error().message.empty()) complain("import-config: " + done.error().message);
  return done.error().code;
}

}  // namespace

void add_import_config_command(CommandLine& program) {
  const auto arguments = std::make_shared<ImportArguments>();
  Subcommand command = program.add_subcommand(
      "import-config", "Turn the settings.json of NANO, an earlier server, into a sluice.toml",
      kImportExamples, [arguments] { return run_import_config(*arguments); });
  command.add_option("file", &arguments->file,
                     {.text = "The settings of NANO, at most 1 MiB of JSON", .operand = "FILE"});
  command.add_option(
      "-o,--output", &arguments->output,
      {.text = "Write to this new file instead of standard output", .operand = "FILE"});
}

}  // namespace sluice
