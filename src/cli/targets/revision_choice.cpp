#include "cli/targets/revision_choice.hpp"

#include <string>

#include "cli/options/exit_code.hpp"
#include "protocol/revision.hpp"

namespace sluice {

Result<void> check_revision(std::string_view name) {
  if (name.empty() || find_revision(name) != nullptr) return {};
  std::string known;
  for (const Revision& each : revisions())
    known.append(known.empty() ? "" : ", ").append(each.name);
  return fail(kExitUsage, "--revision: give one of " + known);
}

}  // namespace sluice
