#include "protocol/client_capabilities.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(ClientCapabilities, AreThoseOfTheRevision) {
  const json::value all = parse_json(R"({"roots":{},"sampling":{"tools":{}},)"
                                     R"("elicitation":{"url":{}},)"
                                     R"("extensions":{"io.modelcontextprotocol/tasks":{}}})")
                              .value();
  const auto in = [&](std::string_view revision) {
    return decode_client_capabilities(all.get_object(), *find_revision(revision));
  };
  for (const Revision& revision : revisions()) {
    EXPECT_TRUE(in(revision.name).roots) << revision.name;
    EXPECT_TRUE(in(revision.name).sampling) << revision.name;
    EXPECT_EQ(in(revision.name).sampling_tools, revision.name >= "2025-11-25") << revision.name;
    EXPECT_EQ(in(revision.name).elicitation_url, revision.name >= "2025-11-25") << revision.name;
    // Where there are no others, every elicitation is a form.
    EXPECT_EQ(in(revision.name).elicitation_form, revision.name == "2025-06-18") << revision.name;
    EXPECT_EQ(in(revision.name).tasks, revision.name == "2026-07-28") << revision.name;
  }
}

}  // namespace
}  // namespace sluice
