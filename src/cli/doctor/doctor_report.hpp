#pragma once

#include <string>

#include "cli/doctor/doctor_checks.hpp"
#include "cli/terminal/terminal.hpp"

namespace sluice {

bool any_failed(const Checks& checks);

/// A line for each check, the fix below it, and a summary.
std::string text_report(const Checks& checks, const Style& style);

/// {"ok":bool,"checks":[{"status":"ok"|"warn"|"fail","subject","finding","fix"}]} and a newline.
std::string json_report(const Checks& checks);

}  // namespace sluice
