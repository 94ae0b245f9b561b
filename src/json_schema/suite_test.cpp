// The JSON Schema project's own tests for 2020-12, as Debian's libtest-json-schema-acceptance-perl
// installs them.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "json_schema/json_schema.hpp"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMandatoryTests = 1176;
constexpr std::size_t kOptionalTests = 145;
constexpr std::size_t kFormatTests = 467;
constexpr std::size_t kIdnHostnameExceptions = 29;  // invalid names that are not refused

json::value read_json(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  Result<json::value> value = parse_json(text);
  if (!value) {
    ADD_FAILURE() << path << ": " << value.error().message;
    return json::array();
  }
  return *std::move(value);
}

std::vector<fs::path> json_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

struct Outcome {
  std::size_t passed = 0;
  std::set<std::string> failed;  // "file: group: test"
};

class JsonSchemaSuite : public testing::Test {
 protected:
  JsonSchemaSuite() {
    const fs::path remotes = root_ / "remotes";
    std::error_code none;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(remotes, none)) {
      if (entry.path().extension() != ".json") continue;
      documents_.emplace(
          "http://localhost:1234/" + entry.path().lexically_relative(remotes).string(),
          read_json(entry.path()));
    }
  }

  void SetUp() override {
    ASSERT_TRUE(fs::exists(root_ / "tests"))
        << root_ << " does not exist: install libtest-json-schema-acceptance-perl "
        << "(scripts/setup --test does)";
  }

  Outcome run(const fs::path& folder, bool assert_formats) {
    Outcome outcome;
    for (const fs::path& file : json_files(root_ / "tests" / "draft2020-12" / folder)) {
      const json::value groups = read_json(file);
      for (const json::value& group : groups.as_array()) {
        const std::string name =
            file.stem().string() + ": " + std::string(group.at("description").as_string());
        run_group(group, name, assert_formats, outcome);
      }
    }
    return outcome;
  }

 private:
  void run_group(const json::value& group, const std::string& name, bool assert_formats,
                 Outcome& outcome) {
    const Result<JsonSchema> schema = JsonSchema::compile(
        group.at("schema"), {.assert_formats = assert_formats, .documents = &documents_});
    for (const json::value& test : group.at("tests").as_array()) {
      const std::string which = name + ": " + std::string(test.at("description").as_string());
      if (schema && schema->validate(test.at("data")).has_value() == test.at("valid").as_bool()) {
        ++outcome.passed;
      } else {
        outcome.failed.insert(schema ? which : which + " [" + schema.error().message + "]");
      }
    }
  }

  fs::path root_ = SLUICE_JSON_SCHEMA_SUITE;
  JsonSchemaDocuments documents_;
};

std::string lines(const std::set<std::string>& names) {
  std::ostringstream out;
  for (const std::string& name : names) out << name << "\n";
  return out.str();
}

TEST_F(JsonSchemaSuite, PassesEveryMandatoryTest) {
  const Outcome outcome = run("", false);
  EXPECT_EQ(lines(outcome.failed), "");
  EXPECT_EQ(outcome.passed, kMandatoryTests);
}

// Formats are asserted because one of these tests needs it: a regular expression with \a.
TEST_F(JsonSchemaSuite, PassesEveryOptionalTest) {
  const Outcome outcome = run("optional", true);
  EXPECT_EQ(lines(outcome.failed), "");
  EXPECT_EQ(outcome.passed, kOptionalTests);
}

// idn-hostname is not checked, because RFC 5892 needs tables of Unicode properties.
TEST_F(JsonSchemaSuite, PassesEveryFormatTestButThoseOfIdnHostname) {
  Outcome outcome = run("optional/format", true);
  const std::size_t exceptions = std::erase_if(
      outcome.failed, [](const std::string& name) { return name.starts_with("idn-hostname: "); });
  EXPECT_EQ(lines(outcome.failed), "");
  EXPECT_EQ(exceptions, kIdnHostnameExceptions);
  EXPECT_EQ(outcome.passed, kFormatTests - kIdnHostnameExceptions);
}

}  // namespace
}  // namespace sluice
