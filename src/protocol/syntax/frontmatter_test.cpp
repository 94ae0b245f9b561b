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

TEST(Frontmatter, ReadsAnyYaml) {
  EXPECT_EQ(read("a: {b: c, d: [1, {e: f}]}\n? g\n: h\nk: !!str 1"),
            R"({"a":{"b":"c","d":[1,{"e":"f"}]},"g":"h","k":"1"})");
  EXPECT_EQ(read("a: \"b\n  c\\x41\"\nd: 'e\n\n  f'\ng:\n  text\nh: [[i],\n  j]\nk: |2\n   l"),
            R"({"a":"b cA","d":"e\nf","g":"text","h":[["i"],"j"],"k":" l\n"})");
  EXPECT_EQ(read("a: &x {n: 1}\nb: *x\nc: [*x, &y z, *y]"),
            R"({"a":{"n":1},"b":{"n":1},"c":[{"n":1},"z","z"]})");
  EXPECT_EQ(read("true: 1\n2: b\n"), R"({"true":1,"2":"b"})");
}

TEST(Frontmatter, RefusesWhatItDoesNotRead) {
  struct Case {
    std::string yaml;
    std::string_view why;
  };
  for (const Case& c : {
           Case{"a: b: c", "line 2: illegal map value"},
           Case{"a: b\na: c", "line 3: 'a' appears twice"},
           Case{"a: b\nc: *x", "line 3: the referenced anchor is not defined"},
           Case{"a: &x [*x]", "line 2: an alias stands within its own anchor"},
           Case{"a: !!binary b", "line 2: the tag tag:yaml.org,2002:binary is not supported"},
           Case{"a: !mine {b: c}", "line 2: the tag !mine is not supported"},
           Case{"[a]: b", "line 2: a name must be a text"},
           Case{"~: b", "line 2: a name must be a text"},
           Case{"- a", "line 2: expected a name"},
           Case{"just text", "line 2: expected a name"},
           Case{"a: \"b\" c", "line 2: "},
           Case{"a: \"\\q\"", "line 2: unknown escape"},
           Case{"a: [b", "end of sequence flow not found"},
           Case{"a: [b] c", "line 2: "},
           Case{"a:\n    b: c\n  d: e", "line 4: "},
           Case{"a: b\x01", "line 2: the line contains control"},
           Case{"a: \xFF", "line 2: the line is not valid UTF-8"},
           Case{"a: " + std::string(kMaxFrontmatter, 'b'), "line 2: the frontmatter has more than"},
       }) {
    EXPECT_THAT(read(c.yaml), HasSubstr(c.why)) << c.yaml.substr(0, 100);
  }
  std::string deep;
  for (std::size_t i = 0; i < 30; ++i) deep.append(std::string(i, ' ')).append("a:\n");
  EXPECT_THAT(read(deep), HasSubstr("line 18: nested too deeply"));
  EXPECT_THAT(read("a:\n  " + std::string(20'000, '[')), HasSubstr("frontmatter, line "));
  // Each repeats the one before twice: 2^40 texts.
  std::string bomb = "a0: &a0 text\n";
  std::string tower = "a0: &a0 text\n";
  for (int i = 1; i <= 40; ++i) {
    const std::string name = "a" + std::to_string(i);
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += name + ": &" + name + " [" + before + ", " + before + "]\n";
    tower += name + ": &" + name + " [" + before + "]\n";
  }
  EXPECT_THAT(read(bomb), HasSubstr("its aliases repeat too much"));
  EXPECT_THAT(read(tower), HasSubstr("nested too deeply"));
  EXPECT_THAT(parse_frontmatter("# No frontmatter").error().message, HasSubstr("begin with"));
  EXPECT_THAT(parse_frontmatter("---\na: b").error().message, HasSubstr("must end with"));
  EXPECT_THAT(parse_frontmatter("").error().message, HasSubstr("begin with"));
}

}  // namespace
}  // namespace sluice
