#include "engine/rkllm/runtime/library_file.hpp"

#include <elf.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "engine/rkllm/runtime/fake_rkllm_test_support.hpp"

namespace sluice::rkllm {
namespace {

using test::fake_library;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::string_view_literals;

TEST(RkllmLibrary, SaysItsVersion) {
  for (const AbiFacts& abi : all_abis()) {
    const Result<LibraryFacts> facts = inspect_library(fake_library(abi.abi));
    ASSERT_TRUE(facts) << facts.error().message;
    EXPECT_EQ(facts->abi, &abi) << facts->version;
  }
}

TEST(RkllmLibrary, ItsVersionIsThatOfTheRuntimeAlone) {
  EXPECT_EQ(version_in("rkllm-runtime version: 1.2.3, rknpu driver version: 0.9.8"sv), "1.2.3");
  EXPECT_EQ(version_in("\0rkllm-runtime version: %s, rknpu\0"
                       "1.3.0\0"
                       "0.9.8\0"sv),
            "1.3.0");
  EXPECT_EQ(version_in("rkllm-runtime version: 1.2.1b1\0"sv), "1.2.1b1");
  EXPECT_EQ(version_in("rkllm-runtime version: 1.2.\0"sv), "");
  EXPECT_EQ(version_in("1.2.3"sv), "") << "it may be that of anything";
  EXPECT_EQ(version_in("rkllm-runtime version: %s\0"
                       "1.2.3\0"
                       "1.0.0\0"sv),
            "")
      << "which?";
  EXPECT_EQ(version_in("rkllm-runtime version: 1.2.3\0rkllm-runtime version: 1.3.0\0"sv), "");
  EXPECT_EQ(version_in(""sv), "");
}

std::string error_of_file(std::string_view bytes) {
  const std::string path = ::testing::TempDir() + "librkllmrt_odd.so";
  std::ofstream(path, std::ios::binary) << bytes;
  const Result<LibraryFacts> facts = inspect_library(path);
  EXPECT_FALSE(facts);
  return facts ? std::string() : std::to_string(facts.error().code) + " " + facts.error().message;
}

TEST(RkllmLibrary, IsRefusedIfItCannotBeTheRuntime) {
  EXPECT_EQ(inspect_library("/nonexistent/librkllmrt.so").error().code, 404);
  EXPECT_THAT(error_of_file(""), HasSubstr("422"));
  EXPECT_THAT(error_of_file("not a library"), HasSubstr("is no shared library"));
  Elf64_Ehdr head{};
  const auto text = [&head] {
    return std::string_view(reinterpret_cast<const char*>(&head), sizeof(head));
  };
  for (std::size_t i = 0; i < SELFMAG; ++i) head.e_ident[i] = static_cast<unsigned char>(ELFMAG[i]);
  head.e_ident[EI_CLASS] = ELFCLASS32;
  EXPECT_THAT(error_of_file(text()), HasSubstr("32 bits"));
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_type = ET_EXEC;
  EXPECT_THAT(error_of_file(text()), HasSubstr("is no shared library"));
  head.e_type = ET_DYN;
  head.e_machine = EM_RISCV;
  EXPECT_THAT(error_of_file(text()), HasSubstr("another processor"));
}

TEST(RkllmLibrary, IsLookedForInTheUsualPlaces) {
  const auto places = library_places("/opt/a::/opt/b");
  ASSERT_GT(places.size(), 2U);
  EXPECT_EQ(places[0], "/opt/a/librkllmrt.so");
  EXPECT_EQ(places[1], "/opt/b/librkllmrt.so");
  EXPECT_EQ(places[2], "/usr/local/lib/librkllmrt.so");
  EXPECT_EQ(find_library({"/nonexistent/librkllmrt.so", fake_library(Abi::v1_1)}),
            fake_library(Abi::v1_1));
  EXPECT_EQ(find_library({"/nonexistent/librkllmrt.so"}), std::nullopt);
}

}  // namespace
}  // namespace sluice::rkllm
