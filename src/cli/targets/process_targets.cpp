#include "cli/targets/process_targets.hpp"

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cli/options/exit_code.hpp"
#include "cli/options/process_environment.hpp"

namespace sluice {
namespace {

std::string working_directory() {
  std::error_code gone;
  const auto path = std::filesystem::current_path(gone);
  return gone ? "/" : path.string();
}

}  // namespace

PlaceSources process_places() {
  return {.platform = this_platform(),
          .home = home_folder(),
          .directory = working_directory(),
          .environment = environment,
          .exists = [](const std::string& path) {
            std::error_code ignored;
            return std::filesystem::exists(path, ignored);
          }};
}

VariableSources process_variables() {
  return {.environment = [](const std::string& name) -> std::optional<std::string> {
            const char* const value = std::getenv(name.c_str());
            return value == nullptr ? std::nullopt : std::optional<std::string>(value);
          },
          .read_file = [](const std::string& path) -> Result<std::string> {
            auto content = read_config(path, kMaxExpanded);
            if (!content) return std::unexpected(std::move(content.error()));
            if (!*content) return fail(kExitUsage, path + ": there is no such file");
            // A variable can make a program do anything, such as LD_PRELOAD.
            if (!(*content)->distrust.empty()) return fail(kExitUsage, (*content)->distrust);
            return std::move((*content)->text);
          },
          .home = home_folder(),
          .directory = working_directory()};
}

FoundServers process_servers() {
  return find_servers(config_places(process_places()),
                      [](const std::string& path) { return read_config(path); });
}

Result<SessionFiles> process_sessions() {
  std::string folder = sessions_folder(process_places());
  if (folder.empty()) {
    return fail(kExitUsage, "there is no place for sessions; set XDG_RUNTIME_DIR or HOME");
  }
  return SessionFiles(std::move(folder));
}

Result<Target> find_target(const TargetArguments& arguments) {
  if (arguments.command.empty() && is_session_word(arguments.word)) {
    const auto sessions = process_sessions();
    if (!sessions) return std::unexpected(sessions.error());
    auto session = sessions->find(arguments.word.substr(1));
    if (!session) return std::unexpected(std::move(session.error()));
    return Target{.place = UnixTarget{.path = sessions->socket(session->name)},
                  .name = std::move(session->name),
                  .request_timeout = session->request_timeout};
  }
  const bool is_name =
      arguments.command.empty() && !arguments.word.empty() && !is_address(arguments.word);
  return parse_target(arguments, is_name ? process_servers() : FoundServers(), process_variables());
}

}  // namespace sluice
