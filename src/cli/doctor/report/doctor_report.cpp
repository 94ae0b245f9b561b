#include "cli/doctor/report/doctor_report.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "json/json.hpp"

namespace sluice {
namespace {

std::string_view word(Check::Status status) {
  switch (status) {
    case Check::Status::ok:
      return "ok";
    case Check::Status::note:
      return "note";
    case Check::Status::warn:
      return "warn";
    case Check::Status::fail:
      break;
  }
  return "fail";
}

std::string_view colour(Check::Status status, const Style& style) {
  switch (status) {
    case Check::Status::ok:
      return style.green();
    case Check::Status::note:
      return style.cyan();
    case Check::Status::warn:
      return style.yellow();
    case Check::Status::fail:
      break;
  }
  return style.red();
}

std::string padded(std::string_view text, std::size_t width) {
  std::string out(text);
  out.resize(std::max(width, out.size()), ' ');
  return out;
}

std::string counted(std::size_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

}  // namespace

bool any_failed(const Checks& checks) {
  return std::ranges::any_of(
      checks, [](const Check& check) { return check.status == Check::Status::fail; });
}

std::string text_report(const Checks& checks, const Style& style, std::string_view all_is_well,
                        std::string_view something_failed) {
  constexpr std::size_t kStatusWidth = 6;
  std::size_t subject_width = 12;
  for (const Check& check : checks) {
    subject_width = std::max(subject_width, check.subject.size() + 2);
  }
  std::string out;
  const auto add_below = [&](std::string_view mark, std::string_view text) {
    if (text.empty()) return;
    out.append(kStatusWidth + subject_width, ' ').append(style.dim()).append(mark);
    out.append(printable(text)).append(style.reset()).push_back('\n');
  };
  for (const Check& check : checks) {
    out.append(colour(check.status, style)).append(padded(word(check.status), kStatusWidth));
    out.append(style.reset()).append(padded(check.subject, subject_width));
    out.append(printable(check.finding)).push_back('\n');
    if (check.status == Check::Status::ok) continue;
    add_below("-> ", check.fix);
    add_below("   ", check.clause);
  }
  const auto count = [&](Check::Status status) {
    return static_cast<std::size_t>(std::ranges::count(checks, status, &Check::status));
  };
  const auto failures = count(Check::Status::fail);
  const auto warnings = count(Check::Status::warn);
  out.append("\n").append(failures == 0 ? all_is_well : something_failed);
  if (failures > 0) out.append(": ").append(counted(failures, "failure"));
  if (warnings > 0) out.append(", ").append(counted(warnings, "warning"));
  out.append("\n");
  return out;
}

std::string json_report(const Checks& checks) {
  json::array list;
  for (const Check& check : checks) {
    json::object entry{{"status", word(check.status)},
                       {"subject", check.subject},
                       {"finding", check.finding},
                       {"fix", check.fix}};
    if (!check.clause.empty()) entry["clause"] = check.clause;
    list.push_back(std::move(entry));
  }
  return to_json(json::object{{"ok", !any_failed(checks)}, {"checks", std::move(list)}}) + "\n";
}

}  // namespace sluice
