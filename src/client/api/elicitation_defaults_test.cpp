#include "client/api/elicitation_defaults.hpp"

#include <gtest/gtest.h>
#include <string>

namespace sluice {
namespace {

TEST(ElicitationDefaultsTest, AreForWhatAnAcceptedFormLeavesOut) {
  const json::object params = parse_json(R"({"requestedSchema":{"properties":{
          "name":{"type":"string","default":"Mira"},"age":{"type":"integer","default":7},
          "city":{"type":"string"},"odd":3}}})")
                                  ->get_object();
  const auto filled = [&params](const std::string& result) {
    json::object out = parse_json(result)->get_object();
    fill_in_defaults(params, out);
    return to_json(out);
  };
  EXPECT_EQ(filled(R"({"action":"accept","content":{"age":8}})"),
            R"({"action":"accept","content":{"age":8,"name":"Mira"}})");
  EXPECT_EQ(filled(R"({"action":"accept"})"),
            R"({"action":"accept","content":{"name":"Mira","age":7}})");
  EXPECT_EQ(filled(R"({"action":"decline"})"), R"({"action":"decline"})");
  EXPECT_EQ(filled(R"({"action":"accept","content":[]})"), R"({"action":"accept","content":[]})");
  json::object url{{"action", "accept"}};
  fill_in_defaults({{"mode", "url"}}, url);
  EXPECT_EQ(to_json(url), R"({"action":"accept"})");
}

}  // namespace
}  // namespace sluice
