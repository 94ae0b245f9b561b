#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/remote/remote_words.hpp"
#include "core/error.hpp"

namespace sluice {

class Subcommand;

/// The options that all commands share which talk to any MCP server.
struct RemoteOptions {
  std::vector<std::string> words;    // before "--"
  std::vector<std::string> command;  // after it
  std::vector<std::string> headers;  // "Name: value"
  std::string revision;              // empty: the newest that the server speaks
  std::optional<double> timeout;     // seconds
  bool as_json = false;
  bool is_verbose = false;  // the traffic is shown
};

/// What the help says of TARGET.
inline constexpr std::string_view kTargetText =
    "A URL (http, https, ws, wss), a socket (unix:PATH, http+unix:PATH), a name that `sluice "
    "servers` lists, or @NAME of a session that `sluice session list` lists";

/// How the help shows the words.
struct WordsHelp {
  std::string operand;  // "TARGET TOOL [NAME=VALUE]"
  std::string text;
  /// Where JSON goes if `--json=JSON` gives the arguments of a call; null: it does not.
  std::string* arguments = nullptr;
};

/// Adds --revision alone. `options` must outlive the parsing.
void add_revision_option(Subcommand& command, RemoteOptions& options);
/// Adds them all. `options` must outlive the parsing.
void add_remote_options(Subcommand& command, RemoteOptions& options, const WordsHelp& words);

}  // namespace sluice
