#pragma once

#include <string>
#include <string_view>

#include "cli/doctor/report/check.hpp"
#include "cli/terminal/terminal.hpp"

namespace sluice {

bool any_failed(const Checks& checks);

/// A line for each check, the fix and the clause below it, and a summary that begins with
/// `all_is_well` or, if a check has failed, with `something_failed`.
std::string text_report(const Checks& checks, const Style& style,
                        std::string_view all_is_well = "Ready to serve",
                        std::string_view something_failed = "Not ready to serve");

/// {"ok":bool,"checks":[{"status":"ok"|"note"|"warn"|"fail","subject","finding","fix"}]} and a
/// newline. A check that has a `clause` has it there too.
std::string json_report(const Checks& checks);

}  // namespace sluice
