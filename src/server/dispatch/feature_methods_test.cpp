#include "server/dispatch/feature_methods.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <string_view>

#include "protocol/error_codes.hpp"
#include "server/dispatch/server_test_support.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Result<UriTemplate> note_template() {
  return UriTemplate::parse("note://{year}/{name}");
}

/// A server with two resources, a template and two prompts.
class FeatureTest : public ::testing::Test {
 protected:
  FeatureTest() {
    ServerDefinition& served = bench.definition;
    served.resources.push_back(
        {.uri = "note://now",
         .name = "now",
         .description = "The time",
         .mime_type = "text/plain",
         .read = [](const std::string& uri) -> Result<ResourceResult> {
           return ResourceResult{
               .contents = {{.uri = uri, .mime_type = "text/plain", .data = "it is \"late\""}}};
         },
         .size = 12,
         .annotations = R"({"priority":1})",
         .metadata = {.title = "Now", .icons = "[]", .meta = R"({"a":1})"}});
    served.resources.push_back(
        {.uri = "note://dot",
         .name = "dot",
         .description = "",
         .mime_type = "",
         .read = [](const std::string& uri) -> Result<ResourceResult> {
           return ResourceResult{
               .contents = {
                   {.uri = uri, .mime_type = "image/png", .data = "\xFF\x01", .binary = true},
                   {.uri = uri + "2", .data = "", .meta = {{"b", 2}}}}};
         }});
    served.resource_templates.push_back(
        {.uri = note_template().value(),
         .uri_template = "note://{year}/{name}",
         .name = "notes",
         .description = "Notes of a year",
         .mime_type = "text/plain",
         .read = [](const ResourceMatch& match) -> Result<ResourceResult> {
           const UriTemplate::Variables& variables = match.variables;
           if (variables.at("year") == "1999") return fail(kResourceNotFound, "gone");
           return ResourceResult{
               .contents = {
                   {.uri = match.uri, .data = variables.at("year") + "-" + variables.at("name")}}};
         },
         .completers = {{"name", [](const TypedArgument& typed) -> Result<ArgumentCompletion> {
                           return ArgumentCompletion{
                               .values = {typed.name + "=" + typed.value +
                                          std::to_string(typed.context.size())}};
                         }}}});
    served.prompts.push_back(
        {.name = "plain",
         .description = "",
         .arguments = {},
         .get = [](const UriTemplate::Variables&) -> Result<PromptResult> {
           return PromptResult{
               .messages = {{.content = Content::text("a")},
                            {.role = PromptMessage::Role::assistant,
                             .content = Content::link({.uri = "note://now", .name = "now"})}}};
         }});
    served.prompts.push_back(
        {.name = "review",
         .description = "Reviews code",
         .arguments = {{.name = "code", .description = "What to review", .required = true},
                       {.name = "style", .title = "Style"}},
         .get = [](const UriTemplate::Variables& arguments) -> Result<PromptResult> {
           if (arguments.at("code") == "bad") return fail(-32602, "cannot review that");
           return PromptResult{.description = "A review",
                               .messages = {{.content = Content::text(arguments.at("code"))}}};
         },
         .completers = {{"code", [](const TypedArgument&) -> Result<ArgumentCompletion> {
                           return ArgumentCompletion{.values = std::vector<std::string>(150, "x")};
                         }}}});
    bench.serve();
  }

  static std::string at(std::string_view revision, std::string_view params) {
    if (revision != "2026-07-28") return std::string(params);
    std::string out(R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                    R"("io.modelcontextprotocol/clientCapabilities":{}})");
    if (!params.empty()) out.append(",").append(params);
    return out;
  }
  /// The reply to a request of that revision.
  std::string ask(std::string_view method, std::string_view params,
                  std::string_view revision = "2025-11-25") {
    const MirroredHeaders headers{.protocol_version = revision, .method = {}, .name = {}};
    return bench.send(R"({"jsonrpc":"2.0","id":1,"method":")" + std::string(method) +
                          R"(","params":{)" + at(revision, params) + "}}",
                      caller, revision == "2026-07-28" ? nullptr : &headers);
  }

  ServerBench bench;
  RecordingCaller caller;
};

TEST_F(FeatureTest, ListsInTheFormOfEachRevision) {
  constexpr std::string_view kDot = R"({"uri":"note://dot","name":"dot"})";
  const std::string oldest =
      R"({"uri":"note://now","name":"now","description":"The time","mimeType":"text/plain",)"
      R"("size":12,"annotations":{"priority":1})";
  EXPECT_EQ(ask("resources/list", "", "2024-11-05"),
            result_text(R"({"resources":[)" + oldest + "}," + std::string(kDot) + "]}"));
  EXPECT_EQ(ask("resources/list", "", "2025-06-18"),
            result_text(R"({"resources":[)" + oldest + R"(,"title":"Now","_meta":{"a":1}},)" +
                        std::string(kDot) + "]}"));
  EXPECT_EQ(
      ask("resources/list", ""),
      result_text(R"({"resources":[)" + oldest + R"(,"title":"Now","icons":[],"_meta":{"a":1}},)" +
                  std::string(kDot) + "]}"));
  EXPECT_THAT(ask("resources/list", "", "2026-07-28"),
              HasSubstr(R"(],"ttlMs":60000,"cacheScope":"private")"));
  EXPECT_EQ(ask("resources/templates/list", ""),
            result_text(R"({"resourceTemplates":[{"uriTemplate":"note://{year}/{name}",)"
                        R"("name":"notes","description":"Notes of a year",)"
                        R"("mimeType":"text/plain"}]})"));
  EXPECT_EQ(ask("prompts/list", ""),
            result_text(R"({"prompts":[{"name":"plain"},{"name":"review",)"
                        R"("description":"Reviews code","arguments":[{"name":"code",)"
                        R"("description":"What to review","required":true},)"
                        R"({"name":"style","title":"Style"}]}]})"));
  EXPECT_THAT(ask("prompts/list", "", "2025-03-26"), Not(HasSubstr("title")));
}

TEST_F(FeatureTest, SaysWhatItOffers) {
  const auto initialize = [this](std::string_view revision) {
    return ask("initialize", R"("protocolVersion":")" + std::string(revision) + "\"", revision);
  };
  EXPECT_THAT(initialize("2025-03-26"),
              HasSubstr(R"("capabilities":{"tools":{},"resources":{},"prompts":{},)"
                        R"("completions":{},"streaming":true,)"));
  EXPECT_THAT(initialize("2024-11-05"),
              HasSubstr(R"("protocolVersion":"2024-11-05","capabilities":{"tools":{},)"
                        R"("resources":{},"prompts":{},"streaming":true,)"));
  EXPECT_THAT(ask("server/discover", "", "2026-07-28"),
              HasSubstr(R"("capabilities":{"tools":{},"resources":{},"prompts":{},)"
                        R"("completions":{},"extensions":)"));
}

TEST_F(FeatureTest, ListsComeInPages) {
  bench.definition.page_size = 1;
  bench.serve();
  const std::string first = ask("prompts/list", "");
  EXPECT_THAT(first, Not(HasSubstr("review")));
  const std::size_t mark = first.find(R"("nextCursor":")");
  ASSERT_NE(mark, std::string::npos) << first;
  const std::string cursor = first.substr(mark + 14, first.find('"', mark + 14) - mark - 14);
  const std::string second = ask("prompts/list", R"("cursor":")" + cursor + "\"");
  EXPECT_THAT(second, HasSubstr("review"));
  EXPECT_THAT(second, Not(HasSubstr("nextCursor")));
  // A cursor is good for the list that gave it.
  EXPECT_EQ(error_code(ask("tools/list", R"("cursor":")" + cursor + "\"")), -32602);
  for (const std::string_view bad : {R"("")", R"("1")", "1", "null"}) {
    EXPECT_EQ(error_code(ask("prompts/list", R"("cursor":)" + std::string(bad))), -32602) << bad;
  }
}

TEST_F(FeatureTest, ReadsResources) {
  EXPECT_EQ(ask("resources/read", R"("uri":"note://now")"),
            result_text(R"({"contents":[{"uri":"note://now","mimeType":"text/plain",)"
                        R"("text":"it is \"late\""}]})"));
  EXPECT_EQ(ask("resources/read", R"("uri":"note://dot")"),
            result_text(R"({"contents":[{"uri":"note://dot","mimeType":"image/png",)"
                        R"("blob":"/wE="},{"uri":"note://dot2","text":"","_meta":{"b":2}}]})"));
  EXPECT_EQ(ask("resources/read", R"("uri":"note://2026/a%20b")"),
            result_text(R"({"contents":[{"uri":"note://2026/a%20b","text":"2026-a b"}]})"));
  EXPECT_THAT(ask("resources/read", R"("uri":"note://now")", "2026-07-28"),
              HasSubstr(R"("ttlMs":0,"cacheScope":"private")"));
}

TEST_F(FeatureTest, ComparingAUriWithTemplatesIsWorkOfTheTurn) {
  const std::string uri = "note://" + std::string(8000, '1');
  for (const std::string& params :
       {R"("uri":")" + uri + "\"", R"("ref":{"type":"ref/resource","uri":")" + uri +
                                       R"("},"argument":{"name":"name","value":"a"})"}) {
    const std::size_t before = bench.managers[0]->work().left();
    ask(params.starts_with(R"("uri)") ? "resources/read" : "completion/complete", params);
    EXPECT_GE(before - bench.managers[0]->work().left(), 3 * uri.size());
    bench.run_all();
  }
}

TEST_F(FeatureTest, UnknownResourcesAreNamedInTheRevisionsWay) {
  for (const std::string_view uri : {"note://then", "note://1999/x", ""}) {
    const std::string asked = R"("uri":")" + std::string(uri) + "\"";
    const std::string data = R"("data":{"uri":")" + std::string(uri) + "\"}";
    EXPECT_EQ(error_code(ask("resources/read", asked)), -32002);
    EXPECT_THAT(ask("resources/read", asked), HasSubstr(data));
    EXPECT_EQ(error_code(ask("resources/read", asked, "2026-07-28")), -32602);
    EXPECT_THAT(ask("resources/read", asked, "2026-07-28"), HasSubstr(data));
  }
  EXPECT_EQ(error_code(ask("resources/read", "")), -32602);
  EXPECT_EQ(error_code(ask("resources/read", R"("uri":1)")), -32602);
}

TEST_F(FeatureTest, GetsPrompts) {
  EXPECT_EQ(ask("prompts/get", R"("name":"review","arguments":{"code":"x"})"),
            result_text(R"({"description":"A review","messages":[{"role":"user",)"
                        R"("content":{"type":"text","text":"x"}}]})"));
  EXPECT_EQ(ask("prompts/get", R"("name":"plain")"),
            result_text(R"({"messages":[{"role":"user","content":{"type":"text","text":"a"}},)"
                        R"({"role":"assistant","content":{"type":"resource_link",)"
                        R"("uri":"note://now","name":"now"}}]})"));
  EXPECT_THAT(ask("prompts/get", R"("name":"plain")", "2025-03-26"),
              HasSubstr(R"("content":{"type":"text","text":"now: note://now"})"));
}

TEST_F(FeatureTest, BadPromptRequestsAreInvalidParams) {
  for (const std::string_view params :
       {"", R"("name":"nobody")", R"("name":"review")", R"("name":"review","arguments":[])",
        R"("name":"review","arguments":{"code":1})", R"("name":"review","arguments":{"style":"x"})",
        R"("name":"review","arguments":{"code":"bad"})"}) {
    EXPECT_EQ(error_code(ask("prompts/get", params)), -32602) << params;
  }
  EXPECT_THAT(ask("prompts/get", R"("name":"review")"), HasSubstr("arguments.code is required"));
}

TEST_F(FeatureTest, CompletesArguments) {
  EXPECT_EQ(ask("completion/complete",
                R"("ref":{"type":"ref/resource","uri":"note://{year}/{name}"},)"
                R"("argument":{"name":"name","value":"a"},"context":{"arguments":{"year":"1"}})"),
            result_text(R"({"completion":{"values":["name=a1"],"hasMore":false}})"));
  const std::string many =
      ask("completion/complete", R"("ref":{"type":"ref/prompt","name":"review"},)"
                                 R"("argument":{"name":"code","value":""})");
  EXPECT_THAT(many, HasSubstr(R"("total":150,"hasMore":true)"));
  EXPECT_EQ(std::ranges::count(many, 'x'), 100);
  bench.definition.prompts[0].arguments.push_back({.name = "a"});
  bench.serve();
  EXPECT_EQ(ask("completion/complete", R"("ref":{"type":"ref/prompt","name":"plain"},)"
                                       R"("argument":{"name":"a","value":""})"),
            result_text(R"({"completion":{"values":[],"hasMore":false}})"));
}

TEST_F(FeatureTest, BadCompletionRequestsAreInvalidParams) {
  constexpr std::string_view kArgument = R"("argument":{"name":"code","value":""})";
  for (const std::string_view ref :
       {"", R"("ref":1,)", R"("ref":{},)", R"("ref":{"type":"ref/tool","name":"echo"},)",
        R"("ref":{"type":"ref/prompt","name":"nobody"},)", R"("ref":{"type":"ref/prompt"},)",
        R"("ref":{"type":"ref/prompt","name":"plain"},)",
        R"("ref":{"type":"ref/resource","uri":"note://{a}"},)"}) {
    EXPECT_EQ(error_code(ask("completion/complete", std::string(ref) + std::string(kArgument))),
              -32602)
        << ref;
  }
  for (const std::string_view argument :
       {R"("argument":1)", R"("argument":{"name":"code"})", R"("argument":{"value":""})",
        R"("argument":{"name":"code","value":""},"context":{"arguments":{"a":1}})"}) {
    EXPECT_EQ(
        error_code(ask("completion/complete",
                       R"("ref":{"type":"ref/prompt","name":"review"},)" + std::string(argument))),
        -32602)
        << argument;
  }
}

TEST(Content, IsWhatTheRevisionKnows) {
  const auto shown = [](const Content& content, std::string_view revision) {
    std::string out;
    content.append_to(out, *find_revision(revision));
    return out;
  };
  EXPECT_EQ(shown(Content::text("a\n", {.audience = {"user", "assistant"},
                                        .priority = 0.5,
                                        .last_modified = "2026-01-01"}),
                  "2024-11-05"),
            R"({"type":"text","text":"a\n","annotations":{"audience":["user","assistant"],)"
            R"("priority":0.5,"lastModified":"2026-01-01"}})");
  EXPECT_EQ(shown(Content::text("a", {.priority = std::numeric_limits<double>::infinity()}),
                  "2024-11-05"),
            R"({"type":"text","text":"a","annotations":{"priority":1}})");
  EXPECT_EQ(shown(Content::image("\x01", "image/png"), "2024-11-05"),
            R"({"type":"image","data":"AQ==","mimeType":"image/png"})");
  EXPECT_EQ(shown(Content::audio("\x01", "audio/wav"), "2025-03-26"),
            R"({"type":"audio","data":"AQ==","mimeType":"audio/wav"})");
  EXPECT_EQ(shown(Content::audio("\x01", "audio/wav"), "2024-11-05"),
            R"({"type":"text","text":"[audio, audio/wav]"})");
  EXPECT_EQ(shown(Content::resource({.uri = "a:b", .mime_type = "x/y", .data = "t"}), "2024-11-05"),
            R"({"type":"resource","resource":{"uri":"a:b","mimeType":"x/y","text":"t"}})");
}

}  // namespace
}  // namespace sluice
