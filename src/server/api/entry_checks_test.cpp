// What a Server says about entries that cannot be served, or that are probably a mistake.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <stdexcept>
#include <string>

#include "sluice/server.hpp"
#include "sluice/testing.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Note {
  std::string name;
  std::optional<std::string> part;
};
struct Numbered {
  int number;
};

/// What std::invalid_argument says that `add` throws; empty if it throws none.
template <class Add>
std::string refusal(Add add) {
  Server server("test", "1");
  try {
    add(server);
  } catch (const std::invalid_argument& refused) {
    return refused.what();
  }
  return "";
}
/// What is logged while `add` runs.
template <class Add>
std::string logged(Add add) {
  Server server("test", "1");
  ::testing::internal::CaptureStderr();
  add(server);
  return ::testing::internal::GetCapturedStderr();
}

std::string nothing() {
  return "";
}

std::string of_resource(const std::string& uri, const std::string& name = "x") {
  return refusal([&](Server& server) { server.resource(uri, name, nothing); });
}
template <class In = Variables>
std::string of_template(const std::string& uri, const std::string& name = "x") {
  return refusal([&](Server& server) {
    server.resource_template(uri, name, [](const In&) { return std::string(); });
  });
}

TEST(EntryChecks, ANameIsNeitherEmptyNorUnprintable) {
  EXPECT_THAT(refusal([](Server& server) { server.tool("", "", nothing); }),
              HasSubstr("give it a name"));
  EXPECT_THAT(refusal([](Server& server) { server.tool("a\nb", "", nothing); }),
              HasSubstr("control characters"));
  EXPECT_THAT(refusal([](Server& server) { server.prompt("\xff", "", nothing); }),
              HasSubstr("UTF-8"));
  EXPECT_THAT(refusal([](Server& server) { server.prompt("", "", nothing); }),
              HasSubstr("give it a name"));
  EXPECT_THAT(of_resource("note://a", ""), HasSubstr("give it a name"));
  EXPECT_THAT(of_template("note://{name}", ""), HasSubstr("give it a name"));
  EXPECT_EQ(refusal([](Server& server) { server.prompt("Übersicht 1", "", nothing); }), "");
}

TEST(EntryChecks, AToolsNameThatClientsMayRefuseIsLogged) {
  EXPECT_THAT(logged([](Server& server) { server.tool("get weather", "", nothing); }),
              HasSubstr("tool=\"get weather\""));
  EXPECT_THAT(logged([](Server& server) { server.tool(std::string(129, 'a'), "", nothing); }),
              HasSubstr("clients may refuse"));
  EXPECT_THAT(logged([](Server& server) {
                server.tool("admin.tools_list-2", "", nothing);
                server.tool(std::string(128, 'a'), "", nothing);
              }),
              IsEmpty());
}

TEST(EntryChecks, ASecondEntryOfANameIsLoggedUnlessTheServerIsServed) {
  EXPECT_THAT(logged([](Server& server) {
                server.tool("twice", "", nothing);
                server.tool("twice", "", nothing);
              }),
              HasSubstr("name=twice"));
  EXPECT_THAT(logged([](Server& server) {
                server.resource("note://a", "a", nothing);
                server.resource("note://a", "b", nothing);
              }),
              HasSubstr("name=note://a"));
  EXPECT_THAT(logged([](Server& server) {
                server.tool("twice", "", nothing);
                const testing::Client client(server);
                server.tool("twice", "", nothing);
                server.tool("once", "", nothing);
              }),
              IsEmpty());
}

TEST(EntryChecks, AUriHasAScheme) {
  EXPECT_THAT(of_resource("notes/about"), HasSubstr("begin with a scheme, as in note://about"));
  EXPECT_THAT(of_resource("note://a b"), HasSubstr("not a URI"));
  EXPECT_EQ(of_resource("file:///a%20b"), "");
  EXPECT_EQ(of_resource("urn:isbn:0451450523"), "");
  EXPECT_THAT(of_template("notes/{name}"), HasSubstr("begin with a scheme"));
  EXPECT_THAT(of_template("note://a b/{name}"), HasSubstr("does not give URIs"));
  EXPECT_EQ(of_template("note://{name}"), "");
  EXPECT_EQ(of_template("{scheme}://{+rest}"), "");
  EXPECT_EQ(of_template("x{kind}:{name}"), "");
}

TEST(EntryChecks, ATemplateAndTheStructOfItsHandlerFit) {
  EXPECT_EQ(of_template<Note>("note://{name}"), "");
  EXPECT_EQ(of_template<Note>("note://{name}{?part}"), "");
  EXPECT_THAT(of_template<Note>("note://{name}/{id}"),
              HasSubstr("no member for the variable id: add one, or take sluice::Variables"));
  EXPECT_THAT(of_template<Note>("note://{part}"),
              HasSubstr("it has no variable for the member name"));
  EXPECT_THAT(of_template<Numbered>("note://{number}"),
              HasSubstr("the member number of its struct must be a text"));
  EXPECT_EQ(of_template<ResourceMatch>("note://{name}"), "");
}

TEST(EntryChecks, ArgumentsOfAPromptDiffer) {
  EXPECT_THAT(refusal([](Server& server) {
                server.prompt("p", "", [](const Variables&) { return std::string(); },
                              {.arguments = {{.name = "a"}, {.name = "a"}}});
              }),
              HasSubstr("two arguments a"));
  EXPECT_THAT(refusal([](Server& server) {
                server.prompt("p", "", [](const Numbered&) { return std::string(); });
              }),
              HasSubstr("must be a text"));
}

}  // namespace
}  // namespace sluice
