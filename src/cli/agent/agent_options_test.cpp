#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>

#include "cli/agent/agent_view.hpp"
#include "cli/agent/policy_option.hpp"
#include "cli/agent/tool_options.hpp"
#include "cli/options/exit_code.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using enum ReactionPolicy::When;

TEST(PolicyOption, ReadsWhatItDocuments) {
  const auto pause = parse_policy("pause=1s,wait=5s,bytes=1KiB,min=2s,reactions=3,tokens=500");
  ASSERT_TRUE(pause) << pause.error().message;
  EXPECT_EQ(pause->tool, "");
  EXPECT_EQ(pause->policy.when, debounce);
  EXPECT_EQ(pause->policy.quiet, 1s);
  EXPECT_EQ(pause->policy.max_wait, 5s);
  EXPECT_EQ(pause->policy.max_bytes, 1024U);
  EXPECT_EQ(pause->policy.min_interval, 2s);
  EXPECT_EQ(pause->policy.max_reactions, 3U);
  EXPECT_EQ(pause->policy.max_reaction_tokens, 500U);
  const auto rare = parse_policy("build:interrupt,reactions=2,match=a,b:c=d");
  ASSERT_TRUE(rare) << rare.error().message;
  EXPECT_EQ(rare->policy.pattern, "a,b:c=d");
  EXPECT_EQ(rare->policy.max_reactions, 2U);
  EXPECT_TRUE(rare->policy.interrupts);
  const auto matches = parse_policy("build:match=error|FAILED, twice");
  ASSERT_TRUE(matches);
  EXPECT_EQ(matches->tool, "build");
  EXPECT_EQ(matches->policy.when, match);
  EXPECT_EQ(matches->policy.pattern, "error|FAILED, twice");
  const auto sudden = parse_policy("x-1:interrupt");
  ASSERT_TRUE(sudden);
  EXPECT_TRUE(sudden->policy.interrupts);
  EXPECT_EQ(parse_policy("every=4")->policy.every, 4U);
  EXPECT_EQ(parse_policy("demand")->policy.when, on_demand);
  EXPECT_EQ(parse_policy("idle,interrupt")->policy.interrupts, true);
}

TEST(PolicyOption, QuotesWhatItCannotRead) {
  for (const char* text :
       {"", "sometimes", "every", "every=x", "every=0", "pause=soon", "chunk=1", "match=(",
        "match=", "chunk,wait", "chunk,,", "pause,bytes=0", "a b:chunk", "every=99999999999"}) {
    const auto policy = parse_policy(text);
    ASSERT_FALSE(policy) << text;
    EXPECT_EQ(policy.error().code, kExitUsage);
    EXPECT_THAT(policy.error().message, HasSubstr("--policy: \"" + std::string(text) + "\": "));
  }
}

TEST(PolicyOption, ReadsTheArgumentsThatItIsFor) {
  const auto one = parse_policy(R"(build{"target":"}:all","n":{"x":1}}:min=1s,match=a{2}:b)");
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->tool, "build");
  ASSERT_TRUE(one->arguments);
  EXPECT_EQ(to_json(*one->arguments), R"({"target":"}:all","n":{"x":1}})");
  EXPECT_EQ(one->policy.pattern, "a{2}:b");
  EXPECT_EQ(one->policy.min_interval, 1s);
  EXPECT_FALSE(parse_policy("build:match=a{2}:b")->arguments);
  for (const char* text : {"build{}", "build{x}:chunk", "build{\"a\":1}chunk", "build[1]:chunk"}) {
    EXPECT_FALSE(parse_policy(text)) << text;
  }
}

/// The options that a command line has.
Result<AgentOptions> options_of(const ToolArguments& arguments) {
  AgentOptions options;
  if (auto read = read_tool_options(arguments, options); !read) {
    return std::unexpected(read.error());
  }
  return options;
}

TEST(ToolOptions, TheLastPolicyThatFitsACallCounts) {
  const auto options = options_of({.policies = {"build:chunk", R"(build{"n":1}:idle)",
                                                R"(build{"n":1,"m":2}:demand)", "pass"}});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->policy.when, pass_through);
  EXPECT_EQ(options->policies.at("build").when, every_chunk);
  const AgentTool build{.name = "build"};
  const auto when = [&](const AgentTool& tool, const json::object& arguments) {
    const auto policy = options->policy_rule(tool, arguments);
    return policy ? std::optional(policy->when) : std::nullopt;
  };
  EXPECT_EQ(when(build, {{"n", 1}, {"x", 0}}), on_idle);
  EXPECT_EQ(when(build, {{"n", 1}, {"m", 2}}), on_demand);
  EXPECT_EQ(when(build, {{"n", 1.0}, {"m", 2}}), on_demand) << "the same number";
  EXPECT_EQ(when(build, {{"n", 2}}), std::nullopt);
  EXPECT_EQ(when({.name = "other"}, {{"n", 1}}), std::nullopt);
}

TEST(ToolOptions, GracesAreForAllToolsOrForOne) {
  const auto options = options_of({.graces = {"2s", "build:1m", "look:0s"}});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->grace, 2s);
  EXPECT_EQ(options->graces.at("build"), 1min);
  EXPECT_EQ(options->graces.at("look"), 0s);
  for (const char* text : {"", "soon", "build:", ":1s", "a b:1s", "169h", "build=1s"}) {
    const auto wrong = options_of({.graces = {text}});
    ASSERT_FALSE(wrong) << text;
    EXPECT_EQ(wrong.error().code, kExitUsage);
    EXPECT_THAT(wrong.error().message, HasSubstr("--grace: \"" + std::string(text) + "\": "));
  }
}

TEST(ToolOptions, APolicyOfACallNamesATool) {
  const ToolArguments arguments{.policies = {R"(build{"n":1}:idle)", "build:chunk"}};
  EXPECT_TRUE(check_tool_options(arguments, {{.name = "build"}}));
  const auto checked = check_tool_options(arguments, {{.name = "look"}});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message, "There is no tool build, which has a policy");
}

json::object event(std::string_view type, json::object members) {
  members["type"] = type;
  return members;
}

TEST(AgentView, ShowsTwoLanes) {
  AgentView view(Style::plain());
  std::string out;
  const auto show = [&](std::string_view type, json::object members) {
    out += view.show(event(type, std::move(members)));
  };
  show("response.output_text.delta", {{"delta", "Let me "}});
  show("response.output_item.done",
       {{"item", {{"type", "function_call"}, {"call_id", "a"}, {"name", "count"}}}});
  show("sluice:tool.output.started",
       {{"call_id", "a"}, {"tool", "count"}, {"arguments", {{"n", 2}}}});
  show("sluice:tool.output.delta", {{"call_id", "a"}, {"delta", "1 "}});
  show("sluice:tool.output.delta", {{"call_id", "a"}, {"delta", "2\nline"}});
  show("response.output_text.delta", {{"delta", "look."}});
  show("response.output_text.done", {{"text", "Let me look."}});
  show("sluice:tool.output.delta", {{"call_id", "a"}, {"delta", "\x1b[2Jend"}});
  show("sluice:tool.output.done",
       {{"call_id", "a"}, {"status", "completed"}, {"text", "all\nof it"}});
  out += view.finish();
  EXPECT_EQ(out,
            "Let me \n"
            "  count | called with {\"n\":2}\n"
            "  count | 1 2\n"
            "  count | line\n"
            "look.\n"
            "  count | [2Jend\n"
            "  count | completed: all of it\n");
}

TEST(AgentView, ACallOfAnyIdIsNotTheModel) {
  AgentView view(Style::plain());
  view.show(event("sluice:tool.output.started", {{"call_id", "model"}, {"tool", "spoof"}}));
  view.show(event("response.output_text.delta", {{"delta", "I say: "}}));
  EXPECT_EQ(view.show(event("sluice:tool.output.delta", {{"call_id", "model"}, {"delta", "x"}})),
            "\n  spoof | x");
}

}  // namespace
}  // namespace sluice
