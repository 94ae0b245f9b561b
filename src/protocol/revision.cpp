#include "protocol/revision.hpp"

#include <algorithm>
#include <array>

#include "core/json.hpp"

namespace sluice {
namespace {

constexpr std::array<Revision, 2> kRevisions = {{
    {.name = "2026-07-28",
     .era = Era::modern,
     .result_type = true,
     .cache_hints = true,
     .server_info_in_meta = true,
     .routing_headers = true,
     .http_error_status = true},
    {.name = "2025-11-25",
     .era = Era::legacy,
     .result_type = false,
     .cache_hints = false,
     .server_info_in_meta = false,
     .routing_headers = false,
     .http_error_status = false},
}};

}  // namespace

std::span<const Revision> revisions() {
  return kRevisions;
}

const Revision* find_revision(std::string_view name) {
  const auto* const found = std::ranges::find(kRevisions, name, &Revision::name);
  return found == kRevisions.end() ? nullptr : found;
}

const Revision& newest_revision(Era era) {
  return *std::ranges::find(kRevisions, era, &Revision::era);
}

std::string revisions_json() {
  std::string out = "[";
  for (const Revision& revision : kRevisions) {
    if (out.size() > 1) out.push_back(',');
    append_json_string(out, revision.name);
  }
  out.push_back(']');
  return out;
}

}  // namespace sluice
