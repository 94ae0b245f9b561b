#include "proxy/upstream/client_identity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;

Result<ClientIdentity> declared(std::string_view capabilities) {
  const json::value value = parse_json(capabilities).value();
  return identity_of(nullptr, &value.as_object());
}

std::string refusal_of(std::string_view capabilities) {
  const auto identity = declared(capabilities);
  if (identity) return "none";
  EXPECT_EQ(identity.error().code, kInvalidParams);
  return identity.error().message;
}

TEST(ClientIdentityTest, KeepsWhatTheClientDeclaresButTasksAndPartialResults) {
  const auto identity = declared(
      R"({"roots":{"listChanged":true},"sampling":{"tools":{}},"elicitation":{"form":{},"new":1},)"
      R"("experimental":{"x":{}},"extensions":{"a/b":{"c":[1]}},"tasks":{"list":{}},)"
      R"("partialResults":{},"later":[2]})");
  ASSERT_TRUE(identity) << identity.error().message;
  EXPECT_EQ(
      to_json(*identity->capabilities),
      R"({"roots":{"listChanged":true},"sampling":{"tools":{}},"elicitation":{"form":{},"new":1},)"
      R"("experimental":{"x":{}},"extensions":{"a/b":{"c":[1]}},"later":[2]})");
  EXPECT_EQ(*identity, *identity_of(nullptr, identity->capabilities.get()));
}

TEST(ClientIdentityTest, HasNoCapabilitiesUnlessTheyAreDeclared) {
  EXPECT_TRUE(identity_of(nullptr, nullptr)->capabilities->empty());
  EXPECT_TRUE(IdentityReader().read({})->capabilities->empty());
}

TEST(ClientIdentityTest, NamesTheCapabilityThatHasTheWrongType) {
  EXPECT_THAT(refusal_of(R"({"sampling":5})"),
              HasSubstr("capabilities.sampling must be an object"));
  EXPECT_THAT(refusal_of(R"({"roots":null})"), HasSubstr("capabilities.roots must be an object"));
  EXPECT_THAT(refusal_of(R"({"roots":{"listChanged":1}})"),
              HasSubstr("capabilities.roots.listChanged"));
  EXPECT_THAT(refusal_of(R"({"sampling":{"tools":true}})"),
              HasSubstr("capabilities.sampling.tools"));
  EXPECT_THAT(refusal_of(R"({"elicitation":{"url":[]}})"),
              HasSubstr("capabilities.elicitation.url"));
  EXPECT_THAT(refusal_of(R"({"experimental":{"x":1}})"), HasSubstr("capabilities.experimental.x"));
  EXPECT_THAT(refusal_of(R"({"extensions":{"a/b":true}})"),
              HasSubstr("capabilities.extensions.a/b"));
}

TEST(ClientIdentityTest, KeepsNoMoreThanTheLimits) {
  const std::string most(kMaxCapabilityBytes - std::string_view("experimentalxy").size(), 's');
  const auto of_text = [](const std::string& text) {
    return R"({"experimental":{"x":{"y":")" + text + R"("}}})";
  };
  EXPECT_EQ(refusal_of(of_text(most)), "none");
  EXPECT_THAT(refusal_of(of_text(most + "s")), HasSubstr("at most 500 values and 16384 bytes"));

  std::string values = "0";
  for (std::size_t i = 0; i < kMaxCapabilityValues; ++i) values += ",0";
  EXPECT_THAT(refusal_of(R"({"later":[)" + values + "]}"), HasSubstr("at most 500 values"));
  std::string members;
  for (std::size_t i = 0; i < kMaxCapabilityValues; ++i) {
    members += (i == 0 ? "\"m" : ",\"m") + std::to_string(i) + "\":0";
  }
  EXPECT_THAT(refusal_of("{" + members + "}"), HasSubstr("at most 500 values"));
}

TEST(ClientIdentityTest, ReadsTheMetaOfARequest) {
  const json::value params =
      parse_json(R"({"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"n","version":"1"},)"
                 R"("io.modelcontextprotocol/clientCapabilities":{"roots":{}}}})")
          .value();
  const auto identity = IdentityReader().read(params.as_object());
  ASSERT_TRUE(identity);
  EXPECT_EQ(identity->info.name, "n");
  EXPECT_EQ(to_json(*identity->capabilities), R"({"roots":{}})");
}

TEST(ClientIdentityTest, AReaderIsNotMisledByTheRequestBefore) {
  IdentityReader reader;
  const auto params = [](const char* name, json::value capabilities) {
    return json::object{
        {"_meta",
         {{"io.modelcontextprotocol/clientInfo", {{"name", name}, {"version", "1"}}},
          {"io.modelcontextprotocol/clientCapabilities", std::move(capabilities)}}}};
  };
  const json::object roots{{"roots", json::object()}};
  const auto first = reader.read(params("a", roots));
  ASSERT_TRUE(first);
  const auto same = reader.read(params("a", roots));
  EXPECT_EQ(same->capabilities, first->capabilities) << "they are shared";
  EXPECT_EQ(reader.read(params("b", roots))->info.name, "b");
  EXPECT_TRUE(reader.read(params("b", json::object()))->capabilities->empty());
  EXPECT_FALSE(reader.read(params("b", {{"roots", 7}})));
  EXPECT_FALSE(reader.read(params("b", {{"roots", 7}})));
  EXPECT_TRUE(reader.read(params("b", json::object()))->capabilities->empty());
  EXPECT_TRUE(reader.read({})->capabilities->empty());
  EXPECT_EQ(*reader.read(params("a", roots)), *first);
}

}  // namespace
}  // namespace sluice
