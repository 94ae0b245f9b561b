#include "engine/llama/model/gguf_check.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

#include "engine/llama/model/gguf_writer_test_support.hpp"

namespace sluice {
namespace {

using testing::HasSubstr;

std::string written(const GgufWriter& writer) {
  std::ostringstream out;
  writer.write(out);
  return std::move(out).str();
}

GgufWriter small_model() {
  GgufWriter writer;
  writer.add("general.architecture", "llama");
  writer.add("some.flag", true);
  writer.add("some.number", 1.5F);
  writer.add("some.words", std::vector<std::string>{"a", "bc", ""});
  writer.add("some.numbers", std::vector<std::int32_t>{1, 2, 3});
  writer.add_tensor("first", {4, 3}, std::vector<float>(12, 1.0F));
  writer.add_tensor("second", {100}, {});
  return writer;
}

Result<GgufSummary> check(const std::string& bytes) {
  std::istringstream in(bytes);
  return check_gguf(in, bytes.size());
}

ModelFault fault(const std::string& bytes) {
  const auto result = check(bytes);
  return result ? ModelFault::none : static_cast<ModelFault>(result.error().code);
}

template <class T>
std::string with(std::string bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
  return bytes;
}

TEST(CheckGguf, AcceptsAWholeFile) {
  const auto summary = check(written(small_model()));
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_EQ(summary->version, 3U);
  EXPECT_EQ(summary->tensors, 2U);
  EXPECT_EQ(summary->architecture, "llama");
  EXPECT_EQ(summary->tensor_bytes, 64U + 400U);
}

TEST(CheckGguf, RefusesWhatIsNoGguf) {
  EXPECT_EQ(fault(""), ModelFault::not_gguf);
  EXPECT_EQ(fault("GG"), ModelFault::not_gguf);
  EXPECT_EQ(fault("%PDF-1.7 and so on"), ModelFault::not_gguf);
}

TEST(CheckGguf, RefusesOtherVersionsAndByteOrders) {
  const std::string whole = written(small_model());
  EXPECT_EQ(fault(with(whole, 4, std::uint32_t{1})), ModelFault::unsupported);
  EXPECT_EQ(fault(with(whole, 4, std::uint32_t{4})), ModelFault::unsupported);
  EXPECT_EQ(fault(with(whole, 4, std::uint32_t{0x03000000})), ModelFault::unsupported);
  EXPECT_THAT(check(with(whole, 4, std::uint32_t{4})).error().message, HasSubstr("version 4"));
}

TEST(CheckGguf, EveryTruncationIsNoticed) {
  const std::string whole = written(small_model());
  const std::size_t data_end = whole.size() - (416 - 400);  // without the padding
  for (std::size_t length = 8; length < data_end; ++length) {
    EXPECT_EQ(fault(whole.substr(0, length)), ModelFault::truncated) << length;
  }
  EXPECT_EQ(fault(whole.substr(0, data_end)), ModelFault::none);
  EXPECT_THAT(check(whole.substr(0, 100)).error().message, HasSubstr("it has 100 bytes and needs"));
}

TEST(CheckGguf, RefusesCountsThatCannotBe) {
  const std::string whole = written(small_model());
  EXPECT_EQ(fault(with(whole, 8, ~std::uint64_t{0})), ModelFault::corrupt);   // number of tensors
  EXPECT_EQ(fault(with(whole, 16, ~std::uint64_t{0})), ModelFault::corrupt);  // number of pairs
  EXPECT_EQ(fault(with(whole, 24, ~std::uint64_t{0})), ModelFault::corrupt);  // length of a key
  EXPECT_EQ(fault(with(whole, 8, std::uint64_t{0})), ModelFault::unsupported);
}

TEST(CheckGguf, RefusesTensorsThatContradictThemselves) {
  const std::string whole = written(small_model());
  const std::size_t info = whole.find("first") + 5;  // dimensions, extents, type, offset
  EXPECT_EQ(fault(with(whole, info, std::uint32_t{0})), ModelFault::corrupt);
  EXPECT_EQ(fault(with(whole, info, std::uint32_t{5})), ModelFault::corrupt);
  EXPECT_EQ(fault(with(whole, info + 4, std::uint64_t{0})), ModelFault::corrupt);
  EXPECT_EQ(fault(with(whole, info + 4, ~std::uint64_t{0})), ModelFault::corrupt);
  EXPECT_EQ(fault(with(whole, info + 4, std::uint64_t{1} << 61U)), ModelFault::corrupt);
  EXPECT_EQ(fault(with(whole, info + 20, std::uint32_t{999})), ModelFault::unsupported);
  EXPECT_EQ(fault(with(whole, info + 24, std::uint64_t{7})), ModelFault::corrupt);
  EXPECT_EQ(fault(with(whole, info + 24, std::uint64_t{1} << 40U)), ModelFault::truncated);
}

TEST(CheckGguf, RefusesBadMetadata) {
  GgufWriter unnamed;
  unnamed.add_tensor("t", {1}, {1.0F});
  EXPECT_EQ(fault(written(unnamed)), ModelFault::corrupt);

  GgufWriter misaligned = small_model();
  misaligned.add("general.alignment", std::uint32_t{33});
  EXPECT_EQ(fault(written(misaligned)), ModelFault::corrupt);

  std::string odd_type = written(small_model());
  odd_type = with(odd_type, odd_type.find("some.flag") + 9, std::uint32_t{99});
  EXPECT_EQ(fault(odd_type), ModelFault::corrupt);
}

TEST(CheckGgufFile, SaysWhatIsWrongWithThePath) {
  const std::string dir = testing::TempDir();
  const auto missing = check_gguf_file(dir + "/there-is-no-such.gguf");
  EXPECT_EQ(static_cast<ModelFault>(missing.error().code), ModelFault::missing);
  EXPECT_THAT(missing.error().message, HasSubstr("there-is-no-such.gguf: no such file"));
  EXPECT_EQ(static_cast<ModelFault>(check_gguf_file(dir).error().code), ModelFault::unreadable);
  EXPECT_EQ(static_cast<ModelFault>(check_gguf_file("/dev/null").error().code),
            ModelFault::unreadable);
}

}  // namespace
}  // namespace sluice
