#include "protocol/syntax/frontmatter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace sluice {
namespace {

using ::testing::HasSubstr;

std::string read(std::string_view yaml) {
  const auto parsed = parse_frontmatter("---\n" + std::string(yaml) + "\n---\n# Body\n");
  return parsed ? to_json(*parsed) : parsed.error().message;
}

TEST(Frontmatter, ReadsWhatSkillsHave) {
  EXPECT_EQ(read("name: pdf-processing\n"
                 "description: Extract, fill, and assemble PDF documents. Use it's \"for\" forms\n"
                 "license: Apache-2.0  # the code's\n"
                 "allowed-tools: Bash(git:*) Read\n"
                 "# a comment\n"
                 "\n"
                 "metadata:\n"
                 "  author: example-org\n"
                 "  version: \"1.0\"\n"
                 "  'it''s': https://a.example/#part"),
            R"({"name":"pdf-processing","description":"Extract, fill, and assemble PDF documents. )"
            R"(Use it's \"for\" forms","license":"Apache-2.0","allowed-tools":"Bash(git:*) Read",)"
            R"("metadata":{"author":"example-org","version":"1.0",)"
            R"("it's":"https://a.example/#part"}})");
  EXPECT_EQ(read(""), "{}");
  EXPECT_EQ(to_json(*parse_frontmatter("\xEF\xBB\xBF---\r\nname: a\r\n---\r\n")),
            R"({"name":"a"})");
}

TEST(Frontmatter, ReadsTextOverSeveralLines) {
  EXPECT_EQ(read("a: one\n  two\n\n  three\nb: x"), R"({"a":"one two\nthree","b":"x"})");
  EXPECT_EQ(read("a: |\n  one\n    two\n\n  three\n\nb: x"),
            R"({"a":"one\n  two\n\nthree\n","b":"x"})");
  EXPECT_EQ(read("a: |-\n  # one\nb: |+\n  two\n\nc: x"), R"({"a":"# one","b":"two\n\n","c":"x"})");
  EXPECT_EQ(read("a: >\n  one\n  two\n\n  three\n    kept\n  four\nb: x"),
            R"({"a":"one two\nthree\n  kept\nfour\n","b":"x"})");
  EXPECT_EQ(read("a: >-  # folded\n  one: two\n  three"), R"({"a":"one: two three"})");
}

TEST(Frontmatter, ReadsListsAndNesting) {
  EXPECT_EQ(
      read("a:\n- one\n- 'two'\nb:\n  - x: 1\n    y: 2\n  -\n    - deep\nc: [a, \"b, c\", 3]"),
      R"({"a":["one","two"],"b":[{"x":1,"y":2},["deep"]],"c":["a","b, c",3]})");
  EXPECT_EQ(read("a: []\nb:\n  c:\n    d: e\nf:"), R"({"a":[],"b":{"c":{"d":"e"}},"f":null})");
  EXPECT_EQ(read("a:\n  - \n  - b\nc: d"), R"({"a":[null,"b"],"c":"d"})");
}

TEST(Frontmatter, ScalarsFollowTheCoreSchema) {
  EXPECT_EQ(
      read("a: [true, False, null, ~, 1, -2, +3, 1.5, 1e3, '1', yes, 1.0.0, 2026-07-28, -, 0x1F, "
           "0xG]"),
      R"({"a":[true,false,null,null,1,-2,3,1.5,1000,"1","yes","1.0.0","2026-07-28","-",31,"0xG"]})");
  EXPECT_EQ(read(R"(a: "tab\tnew\nline \u00e9 \"q\"")"), R"({"a":"tab\tnew\nline é \"q\""})");
}

TEST(Frontmatter, RefusesWhatItDoesNotRead) {
  struct Case {
    std::string yaml;
    std::string_view why;
  };
  for (const Case& c : {
           Case{"a: b: c", "line 2: a value with a colon"},
           Case{"a: b\na: c", "line 3: 'a' appears twice"},
           Case{"a: &x b", "begins with &"},
           Case{"a: *x", "begins with *"},
           Case{"a: !!str b", "begins with !"},
           Case{"a: {b: c}", "begins with {"},
           Case{"? a", "a name, a colon"},
           Case{"- a", "expected a name and a value"},
           Case{"just text", "a name, a colon"},
           Case{"a: \"b", "closed on the line"},
           Case{"a: \"b\" c", "text after the closing quote"},
           Case{"a: \"\\x41\"", "escape"},
           Case{"a: [b", "end on the line"},
           Case{"a: [b] c", "text after the list"},
           Case{"a: [[b]]", "plain and quoted"},
           Case{"a: ['b' c]", "a comma or the end"},
           Case{"a: |2\n  b", "+ or -"},
           Case{"a: |\n    b\n  c", "indented less"},
           Case{"a:\n\tb: c", "indented with spaces"},
           Case{"a:\n  text", "on the same line as its name"},
           Case{"a:\n    b: c\n  d: e", "the indent differs"},
           Case{"  a: b\nc: d", "the indent differs"},
           Case{"a: b\x01", "control"},
           Case{"a: \xFF", "UTF-8"},
           Case{"a: " + std::string(kMaxFrontmatter, 'b'), "more than"},
       }) {
    EXPECT_THAT(read(c.yaml), HasSubstr(c.why)) << c.yaml.substr(0, 100);
  }
  std::string deep;
  for (std::size_t i = 0; i < 30; ++i) deep.append(std::string(i, ' ')).append("a:\n");
  EXPECT_THAT(read(deep), HasSubstr("nested too deeply"));
  EXPECT_THAT(parse_frontmatter("# No frontmatter").error().message, HasSubstr("begin with"));
  EXPECT_THAT(parse_frontmatter("---\na: b").error().message, HasSubstr("must end with"));
  EXPECT_THAT(parse_frontmatter("").error().message, HasSubstr("begin with"));
}

}  // namespace
}  // namespace sluice
