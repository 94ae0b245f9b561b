#include "cli/agent/kept_session.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

#include "cli/options/exit_code.hpp"
#include "cli/targets/session_files.hpp"

namespace sluice {
std::string sessions_database(const PlaceSources& sources) {
  constexpr std::string_view kFile = "/sluice/agent.db";
  // A relative path is to be ignored (XDG Base Directory Specification).
  const auto given = sources.environment("XDG_STATE_HOME");
  if (given && given->starts_with('/')) return *given + std::string(kFile);
  return sources.home.empty() ? std::string() : sources.home + "/.local/state" + std::string(kFile);
}

Result<KeptSession> open_session(const std::string& database, std::string name, bool is_new) {
  if (!is_session_name(name)) {
    return fail(kExitUsage, "--session: a name has 1 to 64 letters, digits, '_', '-' and '.'");
  }
  if (database.empty()) {
    return fail(kExitFailure, "--session: there is no HOME or XDG_STATE_HOME to keep it in");
  }
  std::error_code error;
  const auto folder = std::filesystem::path(database).parent_path();
  if (std::filesystem::create_directories(folder, error)) {
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all, error);
  }
  if (error) {
    return fail(kExitFailure,
                "--session: " + folder.string() + " cannot be made: " + error.message());
  }
  KeptSession session{.name = std::move(name)};
  try {
    session.store = sqlite_run_store(database);
    session.is_begun = !is_new && session.store->load(session.name).version != 0;
  } catch (const Error& failed) {
    return fail(kExitFailure, "--session: " + failed.message);
  }
  return session;
}

}  // namespace sluice
